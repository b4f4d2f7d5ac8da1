package contract

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/airlock-mcp/airlock/internal/strictjson"
)

// maxEnvelope is the largest line that a run prints, in bytes with its newline.
const maxEnvelope = 64 << 10

// envelope is the part of a run's line that cases look at.
type envelope struct {
	Note   string `json:"note"`
	Result struct {
		OK    *bool           `json:"ok"`
		Data  json.RawMessage `json:"data"`
		Error *struct {
			Type      string `json:"type"`
			Message   string `json:"message"`
			Retryable *bool  `json:"retryable"`
			Source    string `json:"source"`
			Traceback string `json:"traceback"`
		} `json:"error"`
		Metrics struct {
			Calls int `json:"calls"`
		} `json:"metrics"`
	} `json:"result"`
}

// Check compares what a run has reported with what the case wants: the line it
// printed, and what the code wrote to stdout and stderr. It returns an error
// that names every difference, a line each, or nil.
func (c Case) Check(line []byte, stdout, stderr string) error {
	if len(line) > maxEnvelope || bytes.Count(bytes.TrimSuffix(line, []byte("\n")), []byte("\n")) > 0 {
		return fmt.Errorf("got %d bytes in more than one line or over the limit, want one line of at most %d bytes",
			len(line), maxEnvelope)
	}
	var got envelope
	if err := strictjson.UnmarshalOpen(line, &got); err != nil {
		return fmt.Errorf("got a line that does not parse: %w", err)
	}
	problems := []error{
		c.Want.checkResult(got),
		contains("stdout", stdout, c.Want.Stdout),
		contains("stderr", stderr, c.Want.Stderr),
		contains("note", got.Note, c.Want.Note),
	}
	if want := c.Want.Calls; want != nil && got.Result.Metrics.Calls != *want {
		problems = append(problems, fmt.Errorf("calls: got %d, want %d", got.Result.Metrics.Calls, *want))
	}
	if err := errors.Join(problems...); err != nil {
		return fmt.Errorf("%w\nthe line was: %s", err, bytes.TrimSpace(line))
	}
	return nil
}

func (w Want) checkResult(got envelope) error {
	switch result := got.Result; {
	case result.OK == nil:
		return errors.New("ok: got nothing, want true or false")
	case *result.OK != w.OK:
		said := ""
		if result.Error != nil {
			said = fmt.Sprintf(" (%s: %s)", result.Error.Type, result.Error.Message)
		}
		return fmt.Errorf("ok: got %v%s, want %v", *result.OK, said, w.OK)
	case w.OK:
		return w.checkData(result.Data)
	case result.Error == nil || result.Error.Retryable == nil:
		return errors.New("error: got none, or one that does not say whether to retry")
	}
	e := got.Result.Error
	problems := []error{
		equal("error type", e.Type, w.Error.Type),
		equal("retryable", *e.Retryable, w.Error.Retryable),
		contains("message", e.Message, w.Error.Message),
		contains("traceback", e.Traceback, w.Error.Traceback),
	}
	if w.Error.Source != "" {
		problems = append(problems, equal("source", e.Source, w.Error.Source))
	}
	for _, text := range w.Error.Hidden {
		if strings.Contains(e.Message, text) || strings.Contains(e.Traceback, text) {
			problems = append(problems, fmt.Errorf("message and traceback: got %q in them, want them without it", text))
		}
	}
	return errors.Join(problems...)
}

// checkData compares JSON values; integers beyond 2^53 digit by digit.
func (w Want) checkData(got json.RawMessage) error {
	if !w.Data.Set {
		return nil
	}
	raw, err := json.Marshal(w.Data.Any)
	if err != nil {
		return fmt.Errorf("the case's data is not JSON: %w", err)
	}
	gotValue, err := decodeNumbers(got)
	if err != nil {
		return fmt.Errorf("data: %w", err)
	}
	wantValue, err := decodeNumbers(raw)
	if err != nil {
		return err
	}
	if !reflect.DeepEqual(gotValue, wantValue) {
		return fmt.Errorf("data: got %s, want %s", got, raw)
	}
	return nil
}

func decodeNumbers(raw []byte) (any, error) {
	return strictjson.Value(raw)
}

func equal[T comparable](what string, got, want T) error {
	if got != want {
		return fmt.Errorf("%s: got %v, want %v", what, got, want)
	}
	return nil
}

func contains(what, got string, want []string) error {
	var problems []error
	for _, text := range want {
		if !strings.Contains(got, text) {
			problems = append(problems, fmt.Errorf("%s: got %q, want it to contain %q", what, got, text))
		}
	}
	return errors.Join(problems...)
}
