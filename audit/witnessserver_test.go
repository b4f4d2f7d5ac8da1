package audit_test

import (
	"bufio"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

// witnessServer is an HTTP witness that implements C2SP tlog-witness.
type witnessServer struct {
	URL, key string
	name     string
	private  ed25519.PrivateKey

	mu     sync.Mutex
	away   bool
	logs   map[string]string // origin → the log's key, as configured by an operator
	size   map[string]int64
	root   map[string]tlog.Hash
	signed int
}

func newWitnessServer(t *testing.T) *witnessServer {
	t.Helper()
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	w := &witnessServer{name: "witness.example/w1", private: private, logs: map[string]string{},
		size: map[string]int64{}, root: map[string]tlog.Hash{}}
	w.key = fmt.Sprintf("%s+%08x+%s", w.name, w.hash(), base64.StdEncoding.EncodeToString(append([]byte{4}, public...)))
	server := httptest.NewServer(http.HandlerFunc(w.serve))
	t.Cleanup(server.Close)
	w.URL = server.URL + "/v1/"
	return w
}

func (w *witnessServer) hash() uint32 {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\n\x04%s", w.name, w.private.Public()))
	return binary.BigEndian.Uint32(sum[:4])
}

func (w *witnessServer) serve(out http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.away {
		http.Error(out, "away", http.StatusServiceUnavailable)
		return
	}
	if r.Method != http.MethodPost || r.URL.Path != "/v1/add-checkpoint" {
		http.Error(out, "no such call", http.StatusNotImplemented)
		return
	}
	old, proof, text, err := readRequest(r.Body)
	if err != nil {
		http.Error(out, err.Error(), http.StatusBadRequest)
		return
	}
	origin, _, _ := strings.Cut(text, "\n")
	verifier, err := note.NewVerifier(w.logs[origin])
	if err != nil {
		http.Error(out, "unknown log", http.StatusNotFound)
		return
	}
	n, err := note.Open([]byte(text), note.VerifierList(verifier))
	if err != nil {
		http.Error(out, "bad signature", http.StatusForbidden)
		return
	}
	lines := strings.Split(n.Text, "\n")
	size, err := strconv.ParseInt(lines[1], 10, 64)
	root, rootErr := tlog.ParseHash(lines[2])
	switch {
	case err != nil || rootErr != nil || old > size || old == 0 && len(proof) > 0 || n.Sigs[0].Name != origin:
		http.Error(out, "bad checkpoint", http.StatusBadRequest)
		return
	case old != w.size[origin] || old == size && root != w.root[origin]:
		out.Header().Set("Content-Type", "text/x.tlog.size")
		out.WriteHeader(http.StatusConflict)
		fmt.Fprintf(out, "%d\n", w.size[origin])
		return
	case old > 0 && old < size && tlog.CheckTree(proof, size, root, old, w.root[origin]) != nil:
		http.Error(out, "bad proof", http.StatusUnprocessableEntity)
		return
	}
	w.size[origin], w.root[origin] = size, root
	w.signed++
	seconds := uint64(time.Now().Unix())
	signature := binary.BigEndian.AppendUint32(nil, w.hash())
	signature = binary.BigEndian.AppendUint64(signature, seconds)
	signature = append(signature, ed25519.Sign(w.private,
		fmt.Appendf(nil, "cosignature/v1\ntime %d\n%s", seconds, n.Text))...)
	fmt.Fprintf(out, "— stranger.example/w2 %s\n", base64.StdEncoding.EncodeToString(make([]byte, 76)))
	fmt.Fprintf(out, "— %s %s\n", w.name, base64.StdEncoding.EncodeToString(signature))
}

func readRequest(body io.Reader) (old int64, proof tlog.TreeProof, text string, err error) {
	in := bufio.NewReader(body)
	line, err := in.ReadString('\n')
	if err != nil {
		return 0, nil, "", err
	}
	if _, err := fmt.Sscanf(line, "old %d\n", &old); err != nil {
		return 0, nil, "", err
	}
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return 0, nil, "", err
		}
		if line == "\n" {
			break
		}
		h, err := tlog.ParseHash(strings.TrimSuffix(line, "\n"))
		if err != nil {
			return 0, nil, "", err
		}
		proof = append(proof, h)
	}
	rest, err := io.ReadAll(in)
	return old, proof, string(rest), err
}

func (w *witnessServer) set(change func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change()
}
