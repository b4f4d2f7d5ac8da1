// Package problem writes error responses over HTTP: a status, and a JSON object
// with a code for programs and a sentence for people.
package problem

import (
	"encoding/json"
	"net/http"

	"github.com/airlock-mcp/airlock/internal/quota"
)

// Body is the JSON of an answer.
type Body struct {
	Error struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

// Write answers with a status, a code such as not_found, and a sentence. Headers that were set before
// are sent with it. The response is not cached.
func Write(w http.ResponseWriter, status int, code, message string) {
	header := w.Header()
	header.Set("Content-Type", "application/json")
	header.Set("Cache-Control", "no-store")
	header.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	var body Body
	body.Error.Code, body.Error.Message = code, message
	_ = json.NewEncoder(w).Encode(body) // an error means that the client has disconnected
}

// Refuse answers a request that a limit refuses, and counts the refusal.
func Refuse(w http.ResponseWriter, r *http.Request, refused *quota.Refusal) {
	refused.Count(r.Context())
	w.Header().Set("Retry-After", "1")
	status, code := Refused(refused)
	Write(w, status, code, refused.Error())
}

// Refused returns the status and the code of the answer to a request that a limit refuses.
func Refused(refused *quota.Refusal) (status int, code string) {
	if refused.Reason == quota.OfAll {
		return http.StatusServiceUnavailable, "busy"
	}
	return http.StatusTooManyRequests, "rate_limited"
}
