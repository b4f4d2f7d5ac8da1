package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Searches are measured on the user's own tools and queries, and mistakes in the files are named.
func TestSearchesAreMeasuredOnFiles(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	tools := file("tools.jsonl", `{"id":"rm","server":"files","name":"delete_file","description":"Deletes a file."}
{"id":"read","server":"files","name":"read_file","description":"Reads a file."}
`)
	queries := file("queries.jsonl", `{"id":"1","query":"get rid of a document","gold":["rm"]}
{"id":"2","query":"open a file","gold":["read"]}
{"id":"3","query":"send an email","gold":[]}
{"id":"4","query":"delete something","gold":[]}
`)
	var table, object bytes.Buffer
	if err := run(t.Context(), []string{"-tools", tools, "-queries", queries}, &table, io.Discard); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"R@1 1.000", "nDCG@5 1.000", "off-topic queries 2",
		"off-topic queries with an answer 1"} {
		if !strings.Contains(strings.Join(strings.Fields(table.String()), " "), want) {
			t.Errorf("got %s, want %q in it", table.String(), want)
		}
	}
	if err := run(t.Context(), []string{"-tools", tools, "-queries", queries, "-json"}, &object,
		io.Discard); err != nil {
		t.Fatal(err)
	}
	want := `"queries":2,"recall@1":1,"recall@3":1,"recall@5":1,"recall@10":1,"ndcg@5":1,"ndcg@10":1,"mrr":1,` +
		`"unanswered":0,"offTopic":2,"offTopicAnswered":1`
	if !strings.Contains(object.String(), want) {
		t.Errorf("got %s, want %s in it", object.String(), want)
	}
	for path, want := range map[string]string{
		filepath.Join(dir, "none.jsonl"):      "none.jsonl",
		file("broken.jsonl", "not JSON\n"):    "line 1",
		file("empty.jsonl", "\n"):             "the file is empty",
		file("gold.jsonl", `{"gold":[[]]}`):   "no tool can meet",
		file("number.jsonl", `{"gold":[17]}`): "is a number, not a list",
	} {
		err := run(t.Context(), []string{"-tools", tools, "-queries", path}, io.Discard, io.Discard)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v for %s, want %q", err, path, want)
		}
	}
}
