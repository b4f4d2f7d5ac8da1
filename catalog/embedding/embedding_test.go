package embedding_test

import (
	"context"
	"encoding/json"
	"errors"
	"hash/fnv"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/airlock-mcp/airlock/catalog"
	"github.com/airlock-mcp/airlock/catalog/embedding"
	"github.com/airlock-mcp/airlock/internal/secret"
)

// endpoint is an HTTP server that speaks the API: a text's vector counts its
// sequences of three letters, by their hash.
type endpoint struct {
	*httptest.Server

	mu       sync.Mutex
	texts    []string // that were asked for
	requests int
	headers  []http.Header
	answer   func(w http.ResponseWriter, texts []string) bool // answers in the place of the usual; false leaves it
}

const dimensions = 256

func newEndpoint(t testing.TB) *endpoint {
	t.Helper()
	e := &endpoint{}
	e.Server = httptest.NewServer(http.HandlerFunc(e.serve))
	t.Cleanup(e.Close)
	return e
}

func (e *endpoint) serve(w http.ResponseWriter, r *http.Request) {
	var question struct {
		Model string
		Input []string
	}
	if r.URL.Path != "/v1/embeddings" || json.NewDecoder(r.Body).Decode(&question) != nil || question.Model != "grams" {
		http.Error(w, "no such thing", http.StatusNotFound)
		return
	}
	e.mu.Lock()
	e.requests++
	e.texts = append(e.texts, question.Input...)
	e.headers = append(e.headers, r.Header)
	answer := e.answer
	e.mu.Unlock()
	if answer != nil && answer(w, question.Input) {
		return
	}
	type item struct {
		Index     int       `json:"index"`
		Embedding []float32 `json:"embedding"`
	}
	var items []item
	for i, text := range question.Input {
		items = append(items, item{i, grams(text)})
	}
	slices.Reverse(items) // clients must not rely on their order
	json.NewEncoder(w).Encode(map[string]any{"data": items})
}

func grams(text string) []float32 {
	vector := make([]float32, dimensions)
	text = strings.ToLower(text)
	for i := 0; i+3 <= len(text); i++ {
		h := fnv.New32a()
		h.Write([]byte(text[i : i+3]))
		vector[h.Sum32()%dimensions]++
	}
	return vector
}

func (e *endpoint) asked() (requests int, texts []string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.requests, slices.Clone(e.texts)
}

func (e *endpoint) answers(f func(w http.ResponseWriter, texts []string) bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.answer = f
}

func source(t testing.TB, e *endpoint, change func(*embedding.EndpointConfig)) *embedding.Endpoint {
	t.Helper()
	config := embedding.EndpointConfig{URL: e.URL + "/v1", Model: "grams", Key: secret.New("key-of-the-endpoint")}
	if change != nil {
		change(&config)
	}
	made, err := embedding.NewEndpoint(config)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// files is a snapshot of tools with little in common.
func files(t testing.TB) *catalog.Snapshot {
	t.Helper()
	var items []json.RawMessage
	for name, description := range map[string]string{
		"read_document": "Reads a document.", "send_message": "Sends a message to a channel.",
		"weather_forecast":      "Tells tomorrow's weather.",
		"create_calendar_event": "Puts an appointment into the calendar.",
		"transcribe_recording":  "Transcribes a recording of speech.",
		"resize_picture":        "Makes a picture smaller.", "list_invoices": "Lists unpaid invoices.",
		"restart_container": "Restarts a container.",
	} {
		raw, err := json.Marshal(map[string]any{"name": name, "description": description,
			"inputSchema": map[string]any{"type": "object"}})
		if err != nil {
			t.Fatal(err)
		}
		items = append(items, raw)
	}
	tools, warnings := catalog.ParseTools("office", items)
	if len(warnings) > 0 {
		t.Fatal(warnings)
	}
	snapshot, err := catalog.NewSnapshot([]catalog.Server{{ID: "office", Tools: tools}})
	if err != nil {
		t.Fatal(err)
	}
	return snapshot
}

func TestMeaningFindsWhatWordsDoNot(t *testing.T) {
	e, snapshot := newEndpoint(t), files(t)
	s := embedding.New(source(t, e, nil), "", "")
	if err := s.Learn(t.Context(), snapshot); err != nil {
		t.Fatal(err)
	}
	const question = "transcriptionist" // no word of a tool
	if found := snapshot.Find(catalog.Query{Text: question}); found.Total > 0 {
		t.Fatalf("got %+v by words, want nothing", found.Tools)
	}
	similar, err := s.Similar(t.Context(), snapshot, question)
	if err != nil || len(similar) == 0 || similar[0].ToolName != "transcribe_recording" {
		t.Fatalf("got %+v, %v, want transcribe_recording first", similar, err)
	}
	// Words find the one, meaning the other: both are answered.
	found := snapshot.Find(catalog.Query{Text: "resize a picture", Similar: similar})
	var names []string
	for _, tool := range found.Tools {
		names = append(names, tool.ToolName)
	}
	if !slices.Contains(names, "resize_picture") || !slices.Contains(names, "transcribe_recording") ||
		found.Total != len(names) {
		t.Errorf("got %q, %d in all, want resize_picture and transcribe_recording", names, found.Total)
	}
}

func TestWhatIsSent(t *testing.T) {
	e, snapshot := newEndpoint(t), files(t)
	s := embedding.New(source(t, e, func(c *embedding.EndpointConfig) { c.Batch = 3 }), "", "")
	if err := s.Learn(t.Context(), snapshot); err != nil {
		t.Fatal(err)
	}
	requests, texts := e.asked()
	if requests != 3 || len(texts) != 8 || !slices.Contains(texts, "read document. Reads a document.") {
		t.Errorf("got %d requests for %q, want 3 for 8 texts", requests, texts)
	}
	for _, header := range e.headers {
		if got := header.Get("Authorization"); got != "Bearer key-of-the-endpoint" {
			t.Errorf("got authorization %q", got)
		}
	}
	for range 2 { // a request is not repeated
		if _, err := s.Similar(t.Context(), snapshot, "a question"); err != nil {
			t.Fatal(err)
		}
		if err := s.Learn(t.Context(), snapshot); err != nil {
			t.Fatal(err)
		}
	}
	if requests, _ := e.asked(); requests != 4 {
		t.Errorf("got %d requests, want 4", requests)
	}
}

// Vectors are cached on disk by the text's digest, for the endpoint and model that
// made them.
func TestVectorsOutliveTheProcess(t *testing.T) {
	e, snapshot, directory := newEndpoint(t), files(t), t.TempDir()
	learn := func(name string) int {
		before, _ := e.asked()
		made := source(t, e, nil)
		if err := embedding.New(made, directory, made.Name()+name).Learn(t.Context(), snapshot); err != nil {
			t.Fatal(err)
		}
		after, _ := e.asked()
		return after - before
	}
	if first, second, other := learn(""), learn(""), learn(" of another model"); first != 1 || second != 0 ||
		other != 1 {
		t.Errorf("got %d, %d and %d requests, want 1, none, and 1 for another model", first, second, other)
	}
	entries, err := os.ReadDir(directory)
	if err != nil || len(entries) != 2 {
		t.Fatalf("got %d files, %v, want 2", len(entries), err)
	}
	for _, entry := range entries {
		path := filepath.Join(directory, entry.Name())
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("got mode %v, %v, want 0600", info.Mode(), err)
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		raw[len(raw)-1] ^= 1
		if err := os.WriteFile(path, raw, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if again := learn(""); again != 1 {
		t.Errorf("got %d requests after the file was damaged, want 1", again)
	}
}

// If an endpoint misbehaves, a search gets an error and continues by words.
func TestBadEndpoints(t *testing.T) {
	vector := func(n int) []float32 { return make([]float32, n) }
	reply := func(v any) func(w http.ResponseWriter, _ []string) bool {
		return func(w http.ResponseWriter, _ []string) bool { return json.NewEncoder(w).Encode(v) == nil }
	}
	type items = []map[string]any
	tests := []struct {
		name   string
		answer func(w http.ResponseWriter, texts []string) bool
		want   string
	}{
		{"a status", func(w http.ResponseWriter, _ []string) bool {
			w.WriteHeader(
				http.StatusTooManyRequests)
			return true
		}, "status 429"},
		{"a redirect", func(w http.ResponseWriter, _ []string) bool {
			w.Header().Set("Location", "http://127.0.0.1:1/")
			w.WriteHeader(http.StatusTemporaryRedirect)
			return true
		}, "status 307"},
		{"no JSON", func(w http.ResponseWriter, _ []string) bool {
			_,
				err := w.Write([]byte("<html>"))
			return err == nil
		}, "does not have the form"},
		{"no vectors", reply(map[string]any{"data": items{}}), "0 vectors for 1 texts"},
		{"no index", reply(map[string]any{"data": items{{"embedding": vector(3)}}}), "belong to"},
		{"a wrong index", reply(map[string]any{"data": items{{"index": 7, "embedding": vector(3)}}}), "belong to"},
		{"an empty vector", reply(map[string]any{"data": items{{"index": 0, "embedding": vector(0)}}}),
			"of one length"},
		{"a vector without measure", reply(map[string]any{"data": items{{"index": 0, "embedding": vector(9000)}}}),
			"of one length"},
		{"text in a vector", reply(map[string]any{"data": items{{"index": 0, "embedding": []string{"x"}}}}),
			"does not have the form"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			e, snapshot := newEndpoint(t), files(t)
			s := embedding.New(source(t, e, nil), "", "")
			if err := s.Learn(t.Context(), snapshot); err != nil {
				t.Fatal(err)
			}
			e.answers(test.answer)
			similar, err := s.Similar(t.Context(), snapshot, "a question")
			if err == nil || !strings.Contains(err.Error(), test.want) || similar != nil {
				t.Errorf("got %v, %v, want an error with %q", similar, err, test.want)
			}
			if err != nil && strings.Contains(err.Error(), "key-of-the-endpoint") {
				t.Errorf("the error has the key: %v", err)
			}
			before, _ := e.asked()
			if _, err := s.Similar(t.Context(), snapshot, "another question"); err == nil {
				t.Error("got no error right after a failure")
			}
			if after, _ := e.asked(); after != before {
				t.Error("an endpoint that has just failed was asked again")
			}
		})
	}
}

func TestAHungEndpointIsNotWaitedFor(t *testing.T) {
	e, snapshot := newEndpoint(t), files(t)
	release := make(chan struct{})
	s := embedding.New(source(t, e, func(c *embedding.EndpointConfig) { c.Timeout = 50 * time.Millisecond }), "", "")
	if err := s.Learn(t.Context(), snapshot); err != nil {
		t.Fatal(err)
	}
	e.answers(func(http.ResponseWriter, []string) bool { <-release; return true })
	defer close(release)
	_, err := s.Similar(t.Context(), snapshot, "a question")
	if err == nil || !strings.Contains(err.Error(), "no answer within 50ms") {
		t.Errorf("got %v, want that there was no answer", err)
	}
}

func TestAnEndpointThatIsNotThere(t *testing.T) {
	e, snapshot := newEndpoint(t), files(t)
	e.Close()
	s := embedding.New(source(t, e, nil), "", "")
	if err := s.Learn(t.Context(), snapshot); err == nil || !strings.Contains(err.Error(), "cannot be reached") {
		t.Errorf("got %v, want that it cannot be reached", err)
	}
}

// Vectors that were received before a failure are not requested again.
func TestLearningGoesOnAfterAFailure(t *testing.T) {
	e, snapshot := newEndpoint(t), files(t)
	e.answers(func(w http.ResponseWriter, texts []string) bool {
		if len(texts) == 3 {
			return false
		}
		w.WriteHeader(http.StatusInternalServerError)
		return true
	})
	s := embedding.New(source(t, e, func(c *embedding.EndpointConfig) { c.Batch = 3 }), "", "")
	if err := s.Learn(t.Context(), snapshot); err == nil {
		t.Fatal("got no error, want one for the last two texts")
	}
	e.answers(nil)
	if err := s.Learn(t.Context(), snapshot); err != nil {
		t.Fatal(err)
	}
	if _, texts := e.asked(); len(texts) != 8+2 {
		t.Errorf("got %d texts asked for, want 10: the last two again", len(texts))
	}
}

func TestConfigurationsOfEndpoints(t *testing.T) {
	for _, test := range []struct{ url, model, want string }{
		{"ftp://example.com", "m", "not http"},
		{"http://", "m", "not http"},
		{"https://user:pw@example.com", "m", "not http"},
		{"https://example.com/v1", "", "no model"},
	} {
		if _, err := embedding.NewEndpoint(embedding.EndpointConfig{URL: test.url, Model: test.model}); err == nil ||
			!strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want %q", test.url, err, test.want)
		}
	}
	for url, want := range map[string]string{
		"https://example.com/v1":            "https://example.com/v1/embeddings",
		"https://example.com/v1/embeddings": "https://example.com/v1/embeddings",
		"http://127.0.0.1:8080":             "http://127.0.0.1:8080/embeddings",
	} {
		made, err := embedding.NewEndpoint(embedding.EndpointConfig{URL: url, Model: "m"})
		if err != nil || made.Address() != want {
			t.Errorf("%s: got %v, %v, want %s", url, made, err, want)
		}
	}
}

// failing is a source that must not be asked.
type failing struct{ t *testing.T }

func (f failing) Vectors(context.Context, []string) ([][]float32, error) {
	f.t.Error("the source was asked")
	return nil, errors.New("asked")
}
func (failing) Remote() bool { return true }

func TestNothingToLearn(t *testing.T) {
	empty, err := catalog.NewSnapshot(nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := embedding.New(failing{t}, "", "").Learn(t.Context(), empty); err != nil {
		t.Error(err)
	}
}
