package embedding_test

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/airlock-mcp/airlock/catalog/embedding"
)

func write(t testing.TB, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestTables(t *testing.T) {
	const words = "car 1 0 0\nvehicle 0.9 0.1 0\nbread 0 1 0\nloaf 0 0.9 0.1\n"
	for name, text := range map[string]string{"GloVe": words, "word2vec": "4 3\n" + words} {
		t.Run(name, func(t *testing.T) {
			table, err := embedding.OpenTable(write(t, "table.txt", text))
			if err != nil {
				t.Fatal(err)
			}
			nearCar(t, table)
		})
	}
}

// nearCar checks that "vehicle" is nearer to "car" than "bread" is.
func nearCar(t *testing.T, table *embedding.Table) {
	t.Helper()
	vectors, err := table.Vectors(t.Context(), []string{"a Car", "vehicle", "bread!", "zzz"})
	if err != nil {
		t.Fatal(err)
	}
	if near, far := cosine(vectors[0], vectors[1]), cosine(vectors[0], vectors[2]); near < 0.9 || far > 0.2 {
		t.Errorf("got %.2f to vehicle and %.2f to bread, want more than 0.9 and less than 0.2", near, far)
	}
	if vectors[3] != nil {
		t.Errorf("got %v for a text without a known word, want none", vectors[3])
	}
}

func cosine(a, b []float32) float64 {
	var ab, aa, bb float64
	for i := range a {
		ab, aa, bb = ab+float64(a[i]*b[i]), aa+float64(a[i]*a[i]), bb+float64(b[i]*b[i])
	}
	return ab / math.Sqrt(aa*bb)
}

// safetensors writes a matrix of 4 rows and 3 columns as the format has it.
func safetensors(kind string, change func(header map[string]any)) string {
	values := []float32{1, 0, 0, 0.9, 0.1, 0, 0, 1, 0, 0, 0.9, 0.1}
	var data []byte
	for _, x := range values {
		switch kind {
		case "F32":
			data = binary.LittleEndian.AppendUint32(data, math.Float32bits(x))
		case "BF16":
			data = binary.LittleEndian.AppendUint16(data, uint16(math.Float32bits(x)>>16))
		default:
			data = binary.LittleEndian.AppendUint16(data, toHalf(x))
		}
	}
	header := map[string]any{"embeddings": map[string]any{"dtype": kind, "shape": []int{4, 3},
		"data_offsets": []int{0, len(data)}}}
	if change != nil {
		change(header)
	}
	raw, err := json.Marshal(header)
	if err != nil {
		panic(err)
	}
	return string(binary.LittleEndian.AppendUint64(nil, uint64(len(raw)))) + string(raw) + string(data)
}

// toHalf is for 0 and ordinary numbers.
func toHalf(x float32) uint16 {
	bits := math.Float32bits(x)
	if x == 0 {
		return 0
	}
	return uint16((bits>>23-112)<<10 | bits>>13&0x3ff)
}

func TestSafetensors(t *testing.T) {
	for _, kind := range []string{"F32", "F16", "BF16"} {
		for name, vocabulary := range map[string]string{
			"WordPiece": `{"model":{"vocab":{"car":0,"veh":1,"##icle":1,"bread":2,"loaf":3}}}`,
			"Unigram":   `{"model":{"vocab":[["▁car",-1.5],["▁vehicle",-2],["▁bread",-3],["▁loaf",-4]]}}`,
		} {
			t.Run(kind+" "+name, func(t *testing.T) {
				path := write(t, "model.safetensors", safetensors(kind, nil))
				if err := os.WriteFile(filepath.Join(filepath.Dir(path), "tokenizer.json"), []byte(vocabulary),
					0o600); err != nil {
					t.Fatal(err)
				}
				table, err := embedding.OpenTable(path)
				if err != nil {
					t.Fatal(err)
				}
				nearCar(t, table)
			})
		}
	}
}

func TestBadTables(t *testing.T) {
	shape := func(rows, columns int) func(map[string]any) {
		return func(h map[string]any) { h["embeddings"].(map[string]any)["shape"] = []int{rows, columns} }
	}
	tests := []struct{ name, file, text, vocabulary, want string }{
		{"empty", "t.txt", "", "", "no words"},
		{"a word alone", "t.txt", "car\n", "", "line 1: a word with its values is missing"},
		{"too few values", "t.txt", "car 1 2\nbread 1\n", "", "line 2: it has 1 values"},
		{"no number", "t.txt", "car 1 x\n", "", `line 1: "x" is not a number`},
		{"not finite", "t.txt", "car 1 NaN\n", "", "is not a number"},
		{"bytes that are no text", "t.txt", "\xff\xfe 1 2\n", "", "not UTF-8"},
		{"a line without end", "t.txt", strings.Repeat("x", 2<<20), "", "token too long"},
		{"no header", "t.safetensors", "abc", "", "ends before its header"},
		{"a header without measure", "t.safetensors", "\xff\xff\xff\xff\xff\xff\xff\x7f", "", "header is too large"},
		{"a header that is no JSON", "t.safetensors", "\x02\x00\x00\x00\x00\x00\x00\x00xx", "", "not JSON"},
		{"a matrix without measure", "t.safetensors", safetensors("F32", shape(1<<30, 1<<30)), "",
			"empty or too large"},
		{"a matrix of less than nothing", "t.safetensors", safetensors("F32", shape(-4, -3)), "", "empty or too large"},
		{"another size than the header says", "t.safetensors", safetensors("F32", shape(5, 3)), "",
			"not where the header says"},
		{"a matrix beyond the file", "t.safetensors", safetensors("F32", func(h map[string]any) {
			h["embeddings"].(map[string]any)["data_offsets"] = []int64{1 << 40, 1<<40 + 48}
		}), "", "not where the header says"},
		{"two matrices", "t.safetensors", safetensors("F32", func(h map[string]any) { h["other"] = h["embeddings"] }),
			"", "2 matrices"},
		{"another kind of value", "t.safetensors", safetensors("I64", nil), "", "not F32"},
		{"no vocabulary", "t.safetensors", safetensors("F32", nil), "", "words of the rows"},
		{"a vocabulary that is no JSON", "t.safetensors", safetensors("F32", nil), "x", "is not JSON"},
		{"a vocabulary without words", "t.safetensors", safetensors("F32", nil), `{"model":{"vocab":{}}}`,
			"there are none"},
		{"a row that is not there", "t.safetensors", safetensors("F32", nil), `{"model":{"vocab":{"car":4}}}`,
			"has the row 4"},
		{"a row below zero", "t.safetensors", safetensors("F32", nil), `{"model":{"vocab":{"car":-1}}}`,
			"has the row -1"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			path := write(t, test.file, test.text)
			if test.vocabulary != "" {
				if err := os.WriteFile(filepath.Join(filepath.Dir(path), "tokenizer.json"), []byte(test.vocabulary),
					0o600); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := embedding.OpenTable(path); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
	if _, err := embedding.OpenTable(t.TempDir()); err == nil {
		t.Error("got a table from a directory")
	}
}

func FuzzSafetensors(f *testing.F) {
	f.Add([]byte(safetensors("F32", nil)))
	f.Add([]byte(safetensors("F16", nil)))
	f.Fuzz(func(t *testing.T, raw []byte) {
		path := write(t, "model.safetensors", string(raw))
		if err := os.WriteFile(filepath.Join(filepath.Dir(path), "tokenizer.json"),
			[]byte(`{"model":{"vocab":{"car":0}}}`), 0o600); err != nil {
			t.Fatal(err)
		}
		table, err := embedding.OpenTable(path)
		if err != nil {
			return
		}
		if _, err := table.Vectors(t.Context(), []string{"car"}); err != nil {
			t.Error(err)
		}
	})
}
