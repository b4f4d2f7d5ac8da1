package orchestrator

import (
	"context"
	"encoding/json"

	"github.com/airlock-mcp/airlock/broker"
	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/internal/errortype"
	"github.com/airlock-mcp/airlock/internal/strictjson"
	"github.com/airlock-mcp/airlock/internal/wire"
)

// maxResources is how many resources one answer lists.
const maxResources = 500

// listedResource is a resource, or a template of resources, as code sees it. Texts that address the model are cleaned.
type listedResource struct {
	ServerID    string `json:"serverId"`
	URI         string `json:"uri,omitempty"`
	URITemplate string `json:"uriTemplate,omitempty"`
	Name        string `json:"name,omitempty"`
	Title       string `json:"title,omitempty"`
	Description string `json:"description,omitempty"`
	MIMEType    string `json:"mimeType,omitempty"`
}

// resourcesAnswer is the answer to catalog/resources.
type resourcesAnswer struct {
	Resources []listedResource `json:"resources"`
	Total     int              `json:"total"`
	Error     *broker.Error    `json:"error,omitempty"`
}

// handleResources lists the resources of the run's snapshot, from an offset.
func (r *run) handleResources(ctx context.Context, req wire.Request) (any, error) {
	var params struct {
		ServerID string `json:"server_id"`
		Offset   int    `json:"offset"`
	}
	if err := decode(req, &params); err != nil {
		return nil, err
	}
	done, refused := r.calls.Look(ctx)
	if refused != nil {
		return resourcesAnswer{Resources: []listedResource{}, Error: refused}, nil
	}
	return struct {
		resourcesAnswer
		lasting
	}{listResources(r.snapshot, params.ServerID, params.Offset), lasting{done}}, nil
}

// listResources lists the resources of one server, or of all if serverID is empty.
func listResources(s *catalog.Snapshot, serverID string, offset int) resourcesAnswer {
	answer := resourcesAnswer{Resources: []listedResource{}}
	if serverID != "" {
		if _, known := s.Server(serverID); !known {
			_, err := s.Lookup(serverID, "")
			answer.Error = &broker.Error{Type: errortype.UnknownTool, Message: err.Error()}
			return answer
		}
	}
	for _, kind := range []catalog.Kind{catalog.KindResource, catalog.KindTemplate} {
		for _, f := range s.FeaturesOf(kind) {
			if serverID != "" && f.ServerID != serverID {
				continue
			}
			if answer.Total++; answer.Total > offset && len(answer.Resources) < maxResources {
				answer.Resources = append(answer.Resources, describe(s, f))
			}
		}
	}
	return answer
}

// describe returns a feature as code sees it. Without a readable definition, only its identifier is known.
func describe(s *catalog.Snapshot, f catalog.Tool) listedResource {
	listed := listedResource{ServerID: f.ServerID}
	if f.Kind == catalog.KindTemplate {
		listed.URITemplate = f.Identifier()
	} else {
		listed.URI = f.Identifier()
	}
	definition, err := s.Definition(f.ServerID, f.Name)
	var members map[string]json.RawMessage
	if err != nil || strictjson.UnmarshalOpen(definition.JSON, &members) != nil {
		return listed
	}
	for name, to := range map[string]*string{"name": &listed.Name, "title": &listed.Title,
		"description": &listed.Description, "mimeType": &listed.MIMEType} {
		strictjson.UnmarshalOpen(members[name], to) // another type counts as absent
	}
	return listed
}
