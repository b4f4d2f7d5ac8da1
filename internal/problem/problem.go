// Package problem is what every answer over HTTP that is not a success looks like: a
// status, and a JSON object with a code for programs and a sentence for people.
package problem

import (
	"encoding/json"
	"net/http"
)

// Body is the JSON of an answer.
type Body struct {
	Error struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

// Write answers with a status, a code such as not_found, and a sentence. Headers that
// were set before are sent with it; nothing keeps the answer.
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
