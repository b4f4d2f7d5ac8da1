package api

import (
	_ "embed"
	"net/http"
)

//go:embed openapi.json
var openapi []byte

func (h *handler) openapi(w http.ResponseWriter, _ *http.Request) {
	_, _ = w.Write(openapi) // an error means that the client has disconnected
}
