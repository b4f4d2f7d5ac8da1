package orchestrator

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/airlock-mcp/airlock/internal/canon"
	"github.com/airlock-mcp/airlock/internal/truncate"
)

// maxPreview is about how many bytes the preview of a large result has.
const maxPreview = 2 << 10

// shape is how much of each part a preview keeps.
type shape struct {
	items  int // of an array
	keys   int // of an object
	text   int // bytes of a text
	depth  int // levels of nesting
	budget int // bytes in all, after which nothing is added but what closes it
}

// preview returns the beginning of each part of a JSON value, as JSON that marks
// omissions: the first items of an array, the first keys of an object, the beginning of a
// string.
func preview(data json.RawMessage) json.RawMessage {
	for s := (shape{items: 20, keys: 60, text: 1500, depth: 8, budget: 4 * maxPreview}); ; s = s.smaller() {
		p := s.of(data)
		if len(p) <= maxPreview || s.items == 1 && s.keys == 4 {
			return p
		}
	}
}

func (s shape) smaller() shape {
	return shape{max(s.items/2, 1), max(s.keys/2, 4), max(s.text/2, 40), max(s.depth-1, 3), max(s.budget/2, maxPreview)}
}

func (s shape) of(data json.RawMessage) json.RawMessage {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var out bytes.Buffer
	if err := s.value(d, &out, 0); err != nil { // the data were valid JSON before
		return json.RawMessage("null")
	}
	return out.Bytes()
}

// value writes the preview of the next value.
func (s shape) value(d *json.Decoder, out *bytes.Buffer, depth int) error {
	token, err := d.Token()
	if err != nil {
		return err
	}
	delim, compound := token.(json.Delim)
	if !compound {
		if text, ok := token.(string); ok && len(text) > s.text {
			kept := truncate.Head(text, s.text)
			token = kept + fmt.Sprintf("… [%d bytes more]", len(text)-len(kept))
		}
		return put(out, token)
	}
	if depth >= s.depth || out.Len() > s.budget {
		n, err := s.skip(d, delim)
		if err != nil {
			return err
		}
		if _, err := d.Token(); err != nil { // the end
			return err
		}
		return put(out, fmt.Sprintf("… [%s]", counted(n, delim)))
	}
	return s.compound(d, out, delim, depth)
}

// compound writes the first parts of an array or object whose beginning was read.
func (s shape) compound(d *json.Decoder, out *bytes.Buffer, delim json.Delim, depth int) error {
	most, closing := s.items, byte(']')
	if delim == '{' {
		most, closing = s.keys, '}'
	}
	out.WriteByte(byte(delim))
	for n := 0; d.More(); n++ {
		if n > 0 {
			out.WriteByte(',')
		}
		if n >= most || n > 0 && out.Len() > s.budget {
			left, err := s.skip(d, delim)
			if err != nil {
				return err
			}
			if delim == '{' {
				out.WriteString(`"…":`)
			}
			if err := put(out, fmt.Sprintf("… [%s more]", counted(left, delim))); err != nil {
				return err
			}
			break
		}
		if delim == '{' {
			key, err := d.Token()
			if err != nil {
				return err
			}
			if text, ok := key.(string); ok && len(text) > s.text {
				key = truncate.Head(text, s.text) + "…"
			}
			if err := put(out, key); err != nil {
				return err
			}
			out.WriteByte(':')
		}
		if err := s.value(d, out, depth+1); err != nil {
			return err
		}
	}
	_, err := d.Token() // the end
	out.WriteByte(closing)
	return err
}

// skip reads the rest of an array or object, but not its end, and returns how many
// parts that were.
func (s shape) skip(d *json.Decoder, delim json.Delim) (int, error) {
	var ignored json.RawMessage
	n := 0
	for ; d.More(); n++ {
		if delim == '{' {
			if _, err := d.Token(); err != nil {
				return 0, err
			}
		}
		if err := d.Decode(&ignored); err != nil {
			return 0, err
		}
	}
	return n, nil
}

// counted names how many parts an array or object has.
func counted(n int, delim json.Delim) string {
	if delim == '{' {
		return fmt.Sprintf("%d keys", n)
	}
	return fmt.Sprintf("%d items", n)
}

// put writes a value that is neither an array nor an object.
func put(out *bytes.Buffer, value any) error {
	text, err := canon.Verbatim(value)
	out.Write(text)
	return err
}
