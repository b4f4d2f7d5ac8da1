package audit

import "encoding/json"

// The numbers of OCSF 1.5 that are used: class API Activity.
const (
	ocsfVersion     = "1.5.0"
	ocsfCategory    = 6    // Application Activity
	ocsfClass       = 6003 // API Activity
	ocsfRead        = 2
	ocsfUpdate      = 3
	ocsfDelete      = 4
	ocsfOther       = 99
	ocsfUnknown     = 0
	ocsfSuccess     = 1
	ocsfFailure     = 2
	ocsfAllowed     = 1
	ocsfDenied      = 2
	ocsfInformation = 1
	ocsfLow         = 2
	ocsfMedium      = 3
	ocsfHigh        = 4
)

// ocsfEvent has the members of API Activity that Airlock knows. The whole record
// is under unmapped.
type ocsfEvent struct {
	ActivityID   int            `json:"activity_id"`
	ActivityName string         `json:"activity_name,omitempty"` // if the number means "other"
	CategoryUID  int            `json:"category_uid"`
	ClassUID     int            `json:"class_uid"`
	TypeUID      int            `json:"type_uid"`
	SeverityID   int            `json:"severity_id"`
	StatusID     int            `json:"status_id"`
	StatusCode   string         `json:"status_code,omitempty"`
	StatusDetail string         `json:"status_detail,omitempty"`
	ActionID     int            `json:"action_id,omitempty"`
	Time         int64          `json:"time"` // milliseconds since 1970
	Duration     int64          `json:"duration,omitempty"`
	Metadata     ocsfMetadata   `json:"metadata"`
	Actor        ocsfActor      `json:"actor"`
	API          ocsfAPI        `json:"api"`
	SrcEndpoint  ocsfEndpoint   `json:"src_endpoint"`
	Resources    []ocsfResource `json:"resources,omitempty"`
	Unmapped     map[string]any `json:"unmapped"`
}

type ocsfMetadata struct {
	Version        string      `json:"version"`
	UID            string      `json:"uid"`
	Sequence       uint64      `json:"sequence"`
	OriginalTime   string      `json:"original_time"`
	CorrelationUID string      `json:"correlation_uid,omitempty"`
	LogName        string      `json:"log_name"`
	Profiles       []string    `json:"profiles"`
	Product        ocsfProduct `json:"product"`
}

type ocsfProduct struct {
	Name    string `json:"name"`
	Vendor  string `json:"vendor_name"`
	Version string `json:"version,omitempty"`
}

type ocsfActor struct {
	AppName string       `json:"app_name"`
	User    *ocsfUser    `json:"user,omitempty"`
	Session *ocsfSession `json:"session,omitempty"`
}

type ocsfUser struct {
	Name string `json:"name"`
}

type ocsfSession struct {
	UID string `json:"uid"`
}

type ocsfAPI struct {
	Operation string        `json:"operation"`
	Service   *ocsfService  `json:"service,omitempty"`
	Request   *ocsfRequest  `json:"request,omitempty"`
	Response  *ocsfResponse `json:"response,omitempty"`
}

type ocsfService struct {
	Name string `json:"name"`
}

type ocsfRequest struct {
	UID string `json:"uid"`
}

type ocsfResponse struct {
	Error string `json:"error,omitempty"`
}

type ocsfEndpoint struct {
	UID  string `json:"uid,omitempty"` // the run: the sandbox the call came from
	Name string `json:"name"`
}

type ocsfResource struct {
	Type string `json:"type"`
	Name string `json:"name"`
	UID  string `json:"uid,omitempty"`
}

// toOCSF maps a record to an API Activity event.
func toOCSF(r Record, o ExportOptions) (any, error) {
	at, err := when(r)
	if err != nil {
		return nil, err
	}
	activity := ocsfActivity(r)
	e := ocsfEvent{
		ActivityID: activity, CategoryUID: ocsfCategory, ClassUID: ocsfClass, TypeUID: ocsfClass*100 + activity,
		SeverityID: ocsfSeverity(r), StatusID: ocsfStatus(r), StatusCode: r.ErrorType, StatusDetail: r.Detail,
		ActionID: ocsfAction(r), Time: at.UnixMilli(), Duration: r.DurationMS,
		Metadata: ocsfMetadata{
			Version: ocsfVersion, UID: r.Hash, Sequence: r.Seq, OriginalTime: r.Time, CorrelationUID: r.TraceID,
			LogName: "airlock audit", Profiles: []string{"security_control"},
			Product: ocsfProduct{Name: "Airlock", Vendor: "Airlock", Version: o.Version},
		},
		Actor:       ocsfActor{AppName: "airlock"},
		API:         ocsfAPI{Operation: operation(r)},
		SrcEndpoint: ocsfEndpoint{UID: r.RunID, Name: "sandbox"},
	}
	if activity == ocsfOther {
		e.ActivityName = string(r.Kind)
	}
	if r.Principal != "" {
		e.Actor.User = &ocsfUser{r.Principal}
	}
	if r.SessionID != "" {
		e.Actor.Session = &ocsfSession{r.SessionID}
	}
	if r.ServerID != "" {
		e.API.Service = &ocsfService{r.ServerID}
		e.Resources = []ocsfResource{{Type: "MCP tool", Name: r.ServerID + "/" + r.ToolName, UID: r.DefinitionDigest}}
	}
	if r.CallID != "" {
		e.API.Request = &ocsfRequest{r.CallID}
	}
	if r.ErrorType != "" {
		e.API.Response = &ocsfResponse{r.ErrorType}
	}
	text, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	e.Unmapped = map[string]any{"airlock": json.RawMessage(text)}
	return e, nil
}

// ocsfActivity is what a call does. A question about a call is not such a call.
func ocsfActivity(r Record) int {
	if r.ToolName == "" || r.Kind == KindApproval {
		return ocsfOther
	}
	switch r.Risk {
	case "read":
		return ocsfRead
	case "write":
		return ocsfUpdate
	case "destructive":
		return ocsfDelete
	}
	return ocsfOther
}

// ocsfSeverity is high for what a person should look at.
func ocsfSeverity(r Record) int {
	switch {
	case r.Kind == KindViolation:
		return ocsfHigh
	case r.Outcome == OutcomeUnknown, r.Kind == KindRecovered:
		return ocsfMedium
	case r.Outcome == OutcomeRefused, len(r.Redactions) > 0:
		return ocsfLow
	}
	return ocsfInformation
}

func ocsfStatus(r Record) int {
	switch r.Outcome {
	case OutcomeOK:
		return ocsfSuccess
	case OutcomeError, OutcomeRefused:
		return ocsfFailure
	}
	return ocsfUnknown
}

// ocsfAction is what Airlock did about a call: while a person is being asked,
// nothing yet, though the rules would allow it.
func ocsfAction(r Record) int {
	switch {
	case r.Kind == KindApproval:
		return ocsfUnknown
	case r.Outcome == OutcomeRefused:
		return ocsfDenied
	case r.Decision == "allow":
		return ocsfAllowed
	}
	return ocsfUnknown
}
