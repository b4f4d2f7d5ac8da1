package witness

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/note"

	"github.com/airlock-mcp/airlock/internal/reach"
	"golang.org/x/mod/sumdb/tlog"
)

// maxAnswer is the most bytes of an answer that are read.
const maxAnswer = 64 << 10

// httpWitness is a witness as C2SP tlog-witness describes it.
type httpWitness struct {
	endpoint string
	verifier note.Verifier
	client   *http.Client
	old      uint64 // the size that it cosigned last, as far as is known
}

func newHTTP(address, key string) (Witness, error) {
	verifier, err := NewCosignatureVerifier(key)
	if err != nil {
		return nil, err
	}
	return &httpWitness{
		endpoint: strings.TrimSuffix(address, "/") + "/add-checkpoint", verifier: verifier,
		client: &http.Client{
			Timeout: submitTimeout, Transport: reach.NewTransport(reach.Configured(), nil),
			CheckRedirect: func(*http.Request, []*http.Request) error {
				return errors.New(
					"the witness answered with a redirect, which is not followed")
			},
		},
	}, nil
}

// Submit asks for a cosignature. If the witness has another size than expected, it
// answers with that size, and is asked again from there.
func (h *httpWitness) Submit(ctx context.Context, c Checkpoint) ([]byte, error) {
	for attempt := 0; ; attempt++ {
		asked := min(h.old, c.Size)
		answer, err := h.ask(ctx, c, asked)
		if err != nil {
			return nil, fmt.Errorf("the audit witness: %w", err)
		}
		switch answer.status {
		case http.StatusOK:
			cosigned, err := h.cosigned(c, answer.body)
			if err != nil {
				return nil, fmt.Errorf("the audit witness: %w", err)
			}
			h.old = c.Size
			return cosigned, nil
		case http.StatusConflict:
			size, err := answer.size()
			switch {
			case err != nil:
				return nil, fmt.Errorf("the audit witness: %w (409: %w)", ErrConflict, err)
			case size > c.Size:
				return nil, fmt.Errorf("%w: it has seen %d records, and this checkpoint has %d", ErrConflict, size,
					c.Size)
			case size == asked:
				return nil, fmt.Errorf("%w: it has another root for %d records", ErrConflict, size)
			case attempt > 3:
				return nil, errors.New("the audit witness: it is being asked by others at the same time")
			}
			h.old = size
		case http.StatusUnprocessableEntity:
			return nil, fmt.Errorf("%w: it refuses the proof that the log only grew since record %d", ErrConflict,
				h.old)
		case http.StatusNotFound:
			return nil, errors.New(
				"the audit witness: it does not know this log: tell it the origin and the key that `airlock audit " +
					"verify --json` prints")
		case http.StatusForbidden:
			return nil, errors.New("the audit witness: it does not accept the log's key")
		default:
			return nil, fmt.Errorf("the audit witness: it answered with status %d", answer.status)
		}
	}
}

type httpAnswer struct {
	status int
	kind   string
	body   []byte
}

// size reads the body of a conflict.
func (a httpAnswer) size() (uint64, error) {
	if kind, _, err := mime.ParseMediaType(a.kind); err != nil || kind != "text/x.tlog.size" {
		return 0, errors.New("it does not say which size it has")
	}
	return strconv.ParseUint(strings.TrimSuffix(string(a.body), "\n"), 10, 53)
}

func (h *httpWitness) ask(ctx context.Context, c Checkpoint, old uint64) (httpAnswer, error) {
	var proof []tlog.Hash
	if old > 0 && old < c.Size {
		var err error
		if proof, err = c.Prove(old); err != nil {
			return httpAnswer{}, err
		}
	}
	var body bytes.Buffer
	fmt.Fprintf(&body, "old %d\n", old)
	for _, hash := range proof {
		fmt.Fprintf(&body, "%s\n", hash)
	}
	body.WriteString("\n")
	body.Write(c.Note)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, h.endpoint, &body)
	if err != nil {
		return httpAnswer{}, err
	}
	response, err := h.client.Do(request)
	if err != nil {
		return httpAnswer{}, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	return httpAnswer{response.StatusCode, response.Header.Get("Content-Type"), text}, err
}

// cosigned joins the note and the witness's signatures. Those of unknown keys are left out.
func (h *httpWitness) cosigned(c Checkpoint, signatures []byte) ([]byte, error) {
	n, err := note.Open(append(bytes.Clone(c.Note), signatures...), note.VerifierList(h.verifier))
	if err != nil {
		return nil, fmt.Errorf("its cosignature does not verify: %w", err)
	}
	joined := bytes.Clone(c.Note)
	for _, s := range n.Sigs {
		joined = fmt.Appendf(joined, "— %s %s\n", s.Name, s.Base64)
	}
	return joined, nil
}
