package catalog

// MissingServer is a configured server whose tools cannot be called now, and
// why. Its texts have passed Clean.
type MissingServer struct {
	ServerID string `json:"serverId"`
	Problem  string `json:"problem"`
	// Retryable reports that Airlock reconnects in the background. A call that
	// fails now can succeed later.
	Retryable bool `json:"retryable,omitempty"`
	// Listed reports that its tools are known from an earlier connection.
	Listed bool `json:"listed,omitempty"`
	// Starting reports that the server has not failed, but has not answered yet.
	Starting bool `json:"-"`
	// SignIn reports that the user of Airlock can sign in to the server.
	SignIn bool `json:"-"`
}

// StillStarting is the Problem of a server that has neither answered nor failed.
const StillStarting = "it is still starting"

// Missing returns the servers that cannot be called now, by ID; serverID asks
// for one of them alone, empty for all.
func (s *Snapshot) Missing(serverID string) []MissingServer {
	var missing []MissingServer
	for _, server := range s.servers {
		if serverID != "" && serverID != server.ID {
			continue
		}
		switch {
		case server.Problem != "":
			missing = append(missing, MissingServer{
				ServerID: server.ID, Problem: Clean(server.Problem),
				Retryable: server.Retrying && !server.SignIn,
				Starting:  server.Problem == StillStarting, SignIn: server.SignIn,
			})
		case server.Unreachable != "":
			missing = append(missing, MissingServer{ServerID: server.ID, Problem: Clean(server.Unreachable),
				Retryable: server.Retrying, Listed: true})
		}
	}
	return missing
}
