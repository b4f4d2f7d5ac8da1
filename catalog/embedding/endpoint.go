package embedding

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/airlock-mcp/airlock/internal/openai"
	"github.com/airlock-mcp/airlock/internal/secret"
	"github.com/airlock-mcp/airlock/internal/strictjson"
)

// Defaults and limits of an endpoint.
const (
	DefaultTimeout = 2 * time.Second
	DefaultBatch   = 64
	maxDimensions  = 8192
	maxAnswer      = 64 << 20 // bytes
)

// EndpointConfig configures the endpoint that computes vectors.
type EndpointConfig struct {
	URL        string        // the base of the API, as in https://api.example.com/v1, or the address of its embeddings
	Model      string        // the name of the model
	Key        secret.Value  // sent as a bearer token; empty sends none
	Dimensions int           // requested from models that support it; 0 means the model's default
	Timeout    time.Duration // of one request; 0 means DefaultTimeout
	Batch      int           // texts in one request; 0 means DefaultBatch
}

// Endpoint asks an HTTP endpoint that speaks OpenAI's API for vectors.
type Endpoint struct {
	config EndpointConfig
	at     openai.Endpoint
}

var _ Source = (*Endpoint)(nil)

// NewEndpoint checks the configuration. Nothing is asked yet.
func NewEndpoint(c EndpointConfig) (*Endpoint, error) {
	u, err := openai.At(c.URL, "embeddings")
	switch {
	case err != nil:
		return nil, fmt.Errorf("the embeddings: %w", err)
	case c.Model == "":
		return nil, errors.New("the embeddings have no model")
	}
	if c.Timeout <= 0 {
		c.Timeout = DefaultTimeout
	}
	if c.Batch <= 0 {
		c.Batch = DefaultBatch
	}
	c.URL = u.String()
	return &Endpoint{c, openai.Endpoint{URL: u, Key: c.Key, Timeout: c.Timeout, Most: maxAnswer}}, nil
}

// Address is where requests go.
func (e *Endpoint) Address() string { return e.config.URL }

// Name identifies the endpoint, the model and the dimensions.
func (e *Endpoint) Name() string {
	return fmt.Sprintf("%s %s %d", e.config.URL, e.config.Model, e.config.Dimensions)
}

// Remote implements Source.
func (e *Endpoint) Remote() bool { return true }

// Vectors implements Source, in as many requests as are needed. With an error it
// returns the vectors of the texts before those that failed.
func (e *Endpoint) Vectors(ctx context.Context, texts []string) ([][]float32, error) {
	var all [][]float32
	for len(texts) > 0 {
		n := min(e.config.Batch, len(texts))
		made, err := e.ask(ctx, texts[:n])
		if err != nil {
			return all, fmt.Errorf("asking the endpoint for embeddings: %w", err)
		}
		if len(all) > 0 && len(all[0]) != len(made[0]) {
			return all, errors.New("asking the endpoint for embeddings: vectors of several lengths")
		}
		all, texts = append(all, made...), texts[n:]
	}
	return all, nil
}

// ask makes one request.
func (e *Endpoint) ask(ctx context.Context, texts []string) ([][]float32, error) {
	raw, err := e.at.Post(ctx, struct {
		Model      string   `json:"model"`
		Input      []string `json:"input"`
		Format     string   `json:"encoding_format"`
		Dimensions int      `json:"dimensions,omitempty"`
	}{e.config.Model, texts, "float", e.config.Dimensions})
	if err != nil {
		return nil, err
	}
	return vectorsIn(raw, len(texts))
}

// vectorsIn reads an answer about n texts.
func vectorsIn(raw []byte, n int) ([][]float32, error) {
	var answer struct {
		Data []struct {
			Index     *int      `json:"index"`
			Embedding []float32 `json:"embedding"`
		} `json:"data"`
	}
	if err := strictjson.UnmarshalOpen(raw, &answer); err != nil {
		return nil, errors.New("its answer does not have the form that the API defines")
	}
	if len(answer.Data) != n {
		return nil, fmt.Errorf("it answered %d vectors for %d texts", len(answer.Data), n)
	}
	vectors := make([][]float32, n)
	for _, item := range answer.Data {
		switch {
		case item.Index == nil || *item.Index < 0 || *item.Index >= n || vectors[*item.Index] != nil:
			return nil, errors.New("its vectors do not say which texts they belong to")
		case len(item.Embedding) == 0 || len(item.Embedding) > maxDimensions ||
			len(item.Embedding) != len(answer.Data[0].Embedding):
			return nil, fmt.Errorf("its vectors are not all of one length, from 1 to %d", maxDimensions)
		case !finite(item.Embedding):
			return nil, errors.New("a vector has a value that is not a number")
		}
		vectors[*item.Index] = item.Embedding
	}
	return vectors, nil
}

func finite(v []float32) bool {
	for _, x := range v {
		if math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) {
			return false
		}
	}
	return true
}
