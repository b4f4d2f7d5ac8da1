package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"
)

// The limits of questions between nodes.
const (
	askTime   = 2 * time.Second
	maxAsked  = 1 << 20  // bytes of a question
	maxAnswer = 32 << 20 // bytes of an answer
)

// askPath is the path of questions between nodes. Requests of clients do not reach it: they have clientHeader.
const askPath = "/node"

// errSilent is the error of a node that has not renewed its lease for a while, or that others do not reach.
var errSilent = errors.New("the node has not renewed its lease for a while, or has no address for other nodes")

// Answer is what another node has answered.
type Answer struct {
	Node string // its name
	Body []byte
	Err  error // why there is no answer; nil if there is one
}

// Ask asks all other nodes that have not ended, and returns their answers by name. It waits for 2 seconds. The answers
// come from the function that the nodes pass to Serve. Without a cluster, the list is empty.
func (n *Node) Ask(ctx context.Context, question []byte) []Answer {
	if n == nil || n.link == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	var others []member
	for _, m := range n.members.list() {
		if !m.ended {
			others = append(others, m)
		}
	}
	answers := make([]Answer, len(others))
	var asked sync.WaitGroup
	for i, m := range others {
		answers[i] = Answer{Node: m.name, Err: errSilent}
		if !m.alive || m.address == "" {
			continue
		}
		asked.Go(func() {
			if answers[i].Body, answers[i].Err = n.ask(ctx, m, question); answers[i].Err != nil {
				n.noteUnreached(ctx, m, answers[i].Err)
			}
		})
	}
	asked.Wait()
	return answers
}

// AskOne asks another node by its name, and waits for its answer until ctx ends.
func (n *Node) AskOne(ctx context.Context, name string, question []byte) ([]byte, error) {
	if n == nil || n.link == nil {
		return nil, errSilent
	}
	n.readMembers(ctx, time.Now().Add(-rereadAfter)) // it may have another address since a moment ago
	to, _ := n.members.named(name)
	if !to.alive || to.address == "" {
		return nil, errSilent
	}
	return n.ask(ctx, to, question)
}

func (n *Node) ask(ctx context.Context, to member, question []byte) ([]byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+to.pin+askPath, bytes.NewReader(question))
	if err != nil {
		return nil, err
	}
	answer, err := n.link.transport.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer+1))
	switch {
	case err != nil:
		return nil, err
	case answer.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("the node answers with status %d", answer.StatusCode)
	case len(body) > maxAnswer:
		return nil, fmt.Errorf("the answer has more than %d bytes", maxAnswer)
	}
	return body, nil
}

// answering returns the handler of questions of other nodes.
func answering(answer func(ctx context.Context, question []byte) ([]byte, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		question, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxAsked))
		if err != nil || r.URL.Path != askPath || answer == nil {
			http.Error(w, "the node does not know this question", http.StatusBadRequest)
			return
		}
		body, err := answer(r.Context(), question)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		_, _ = w.Write(body) // an error means that the node has given up
	})
}
