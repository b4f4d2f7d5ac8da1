package runs

import (
	"bytes"
	"testing"
)

// A person sees texts as they are, other results as indented JSON, errors with their traceback, and the files.
func TestShowOutcome(t *testing.T) {
	for _, test := range []struct{ name, line, want, printed string }{
		{"a text", `{"run_id":"run_1","result":{"ok":true,"data":"a\nb\u0007","metrics":{"duration_ms":1200,` +
			`"calls":2}}}`,
			"a\nb\\u{7}\nrun_1, 1.2s, 2 calls\n", ""},
		{"an object", `{"run_id":"run_1","result":{"ok":true,"data":{"a":[1]},"metrics":{"duration_ms":5}}}`,
			"{\n  \"a\": [\n    1\n  ]\n}\nrun_1, 5ms\n", ""},
		{"no result", `{"run_id":"run_1","note":"set result","result":{"ok":true,"data":null,` +
			`"metrics":{"duration_ms":5}}}`,
			"set result\nrun_1, 5ms\n", ""},
		{"an error", `{"run_id":"run_1","result":{"ok":false,"error":{"type":"ToolError","message":"no",` +
			`"traceback":"line 1\n"},"metrics":{"duration_ms":5,"calls":1,"calls_denied":3}}}`,
			"ToolError: no\nline 1\nrun_1, 5ms, 1 call, 3 refused\n", "something else"},
		{"an error whose traceback is on the same terminal", `{"run_id":"run_1","result":{"ok":false,"error":` +
			`{"type":"ToolError","message":"no","traceback":"line 1\n"},"metrics":{"duration_ms":5}}}`,
			"ToolError: no\nrun_1, 5ms\n", "hello\nline 1\n"},
		{"files", `{"run_id":"run_1","result":{"ok":true,"data":1,"metrics":{"duration_ms":5}},` +
			`"attachments":[{"name":"a.png","mime_type":"image/png","bytes":7,"uri":"airlock://a"}],` +
			`"result_file":{"uri":"airlock://r","bytes":9}}`,
			"1\nattached a.png (image/png, 7 bytes): airlock://a\nthe whole result has 9 bytes: airlock://r\n" +
				"run_1, 5ms\n", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			var out bytes.Buffer
			if err := showOutcome(&out, []byte(test.line), test.printed); err != nil {
				t.Fatal(err)
			}
			if got := out.String(); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
