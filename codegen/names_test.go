package codegen

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestNames(t *testing.T) {
	for _, tt := range []struct{ name, tool, python, node, types string }{
		{"the design's example", "admin.tools-list_all", "admin_tools_list_all", "adminToolsListAll",
			"AdminToolsListAll"},
		{"camel case", "getDocument", "get_document", "getDocument", "GetDocument"},
		{"an acronym before a word", "HTTPServer", "http_server", "httpServer", "HttpServer"},
		{"an acronym in the middle", "getURLList", "get_url_list", "getUrlList", "GetUrlList"},
		{"an acronym at the end", "listIDsFromURL", "list_i_ds_from_url", "listIDsFromUrl", "ListIDsFromUrl"},
		{"a digit before a capital", "listV2Items", "list_v2_items", "listV2Items", "ListV2Items"},
		{"digits alone", "3d", "_3d", "_3d", "_3d"},
		{"separators in a row and at the ends", "-a..b__c-", "a_b_c", "aBC", "ABC"},
		{"separators only", "-._", "_", "_", "_"},
		{"a reserved word of both", "import", "import_", "import_", "Import"},
		{"a reserved word of Python", "lambda", "lambda_", "lambda", "Lambda"},
		{"a reserved word of JavaScript", "delete", "delete", "delete_", "Delete"},
		{"what await import() would call", "then", "then", "then_", "Then"},
		{"a special name", "__init__", "init", "init", "Init"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := []string{pythonName(tt.tool), nodeName(tt.tool), typeName(tt.tool)}
			if want := []string{tt.python, tt.node, tt.types}; !slices.Equal(got, want) {
				t.Errorf("%q: got %q, want %q", tt.tool, got, want)
			}
		})
	}
}

func TestNamesTheProtocolForbids(t *testing.T) {
	for name, tool := range map[string]string{
		"empty": "", "129 characters": strings.Repeat("a", 129), "a path": "../x", "a space": "a b",
		"a letter of another script": "é",
		"a line":                     "a\n", "a control": "a\x00", "a quotation mark": `a"`, "a dollar sign": "$invoke",
	} {
		if refuseName(tool) == "" {
			t.Errorf("%s: got %q accepted, want a reason against it", name, tool)
		}
	}
	for _, tool := range []string{"a", strings.Repeat("a", 128), "A-Z.a_z-0.9"} {
		if reason := refuseName(tool); reason != "" {
			t.Errorf("%q: got refused because %s, want it accepted", tool, reason)
		}
	}
}

func TestReservedWordsAreSorted(t *testing.T) {
	for name, words := range map[string][]string{"Python": pythonReserved, "JavaScript": nodeReserved,
		"keys": pythonReservedKeys} {
		if !slices.IsSorted(words) {
			t.Errorf("%s: the list is not sorted, so it cannot be searched", name)
		}
	}
}

// toolNames draws names that the protocol allows and that like to meet.
func toolNames() *rapid.Generator[[]string] {
	name := rapid.StringOfN(rapid.RuneFrom([]rune("aB_-.3")), 1, 5, -1)
	return rapid.SliceOfNDistinct(rapid.OneOf(name,
		rapid.SampledFrom([]string{"class", "Class", "class_", "get_doc", "getDoc"})), 1, 12, rapid.ID)
}

func TestNamesAreDistinctIdentifiers(t *testing.T) {
	identifier := regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	rapid.Check(t, func(t *rapid.T) {
		tools := toolNames().Draw(t, "tools")
		for _, lang := range []language{pythonLanguage, nodeLanguage} {
			names := distinct(tools, lang.function, lang.alias)
			meaning := map[string]string{}
			for _, tool := range tools {
				if !identifier.MatchString(names[tool]) {
					t.Fatalf("%s: %q: got %q, want an identifier", lang.title, tool, names[tool])
				}
				for _, name := range []string{names[tool], tool} {
					if name == tool && !lang.alias(tool) {
						continue
					}
					if other, taken := meaning[name]; taken && other != tool {
						t.Fatalf("%s: got %q for both %q and %q", lang.title, name, other, tool)
					}
					meaning[name] = tool
				}
			}
		}
	})
}

func TestNamesDoNotDependOnOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tools := toolNames().Draw(t, "tools")
		shuffled := rapid.Permutation(tools).Draw(t, "shuffled")
		for _, lang := range []language{pythonLanguage, nodeLanguage} {
			first := distinct(tools, lang.function, lang.alias)
			second := distinct(shuffled, lang.function, lang.alias)
			for _, tool := range tools {
				if first[tool] != second[tool] {
					t.Fatalf("%s: %q: got %q and, in another order, %q", lang.title, tool, first[tool], second[tool])
				}
			}
		}
	})
}

func TestFileNamesAreShortAndDifferOnAnyDisk(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		part := rapid.SampledFrom([]string{"a", "A", "b", "index", strings.Repeat("long", 30)})
		id := rapid.Custom(func(t *rapid.T) string {
			return strings.Join(
				rapid.SliceOfN(part, 1, 3).Draw(t, "parts"), "")
		})
		identifiers := rapid.SliceOfNDistinct(id, 1, 8, rapid.ID).Draw(t, "identifiers")
		slices.Sort(identifiers)
		folded := map[string]string{"index": "the template"}
		for id, stem := range stems(identifiers, "index") {
			if len(stem) > maxStem {
				t.Fatalf("%q: got a name of %d bytes, want at most %d", id, len(stem), maxStem)
			}
			if other, taken := folded[strings.ToLower(stem)]; taken {
				t.Fatalf("%q and %q: got one file, want two", id, other)
			}
			folded[strings.ToLower(stem)] = id
		}
	})
}
