package console_test

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/airlock-mcp/airlock/app/auth"
)

// hostile are texts that become markup, script or URLs if they are not escaped, or that
// look like other texts.
var hostile = map[string]string{
	"a script":           `<script>alert(1)</script>`,
	"a closed element":   `</code></pre></dd></dl></title></textarea></script></style><img src=x onerror=alert(1)>`,
	"a closed attribute": `"><svg/onload=alert(1)>`,
	"an attribute":       `" onfocus="alert(1)" autofocus x="`,
	"a bare attribute":   `x onmouseover=alert(1) hx-get=//evil.example hx-trigger=load`,
	"a single quote":     `' onclick='alert(1)`,
	"an address":         `javascript:alert(1)//`,
	"data":               `data:text/html,<script>alert(1)</script>`,
	"another host":       `//evil.example/\\evil.example`,
	"a path":             `/../../sign-out?x=y#z`,
	"a template":         `{{.CSRF}}{{template "csrf" .}}{%x%}${x}<%x%>`,
	"an entity":          `&lt;script&gt;&#60;script&#x3e;&quot;`,
	"a comment":          `--><!--<![CDATA[]]><?x?>`,
	"what htmx obeys": `<div hx-on:load="alert(1)" hx-get="/sign-out" hx-trigger="load" hx-swap-oob="true" ` +
		`id="main"></div>`,
	"line separators":     "a\u2028b\u2029c\u0085d\ve\ff\rg",
	"NUL and controls":    "a\x00b\x01c\x1b[31md\x7f",
	"directions":          "a\u202eb\u2066c\u200fd\u061ce",
	"invisible":           "a\u200bb\u00adc\ufeffd\U000e0041e",
	"not UTF-8":           "a\xff\xfe<\xc0\xbcscript\xc0\xbe\xed\xa0\x80",
	"backticks":           "`alert(1)`",
	"nested":              `<<script>script>alert(1)<</script>/script><scr<script>ipt>`,
	"mathematics":         `<math><mtext></form><form><mglyph><style></math><img src onerror=alert(1)>`,
	"upper case and tabs": "<IMG\tSRC=x\rONERROR\r=\talert(1)>",
}

// addresses are the pages that show foreign texts: those of a run and a question, and those with
// the text in the URL.
func addresses(run, question, text string) []string {
	return []string{
		"/runs", "/runs/now", "/runs?text=" + url.QueryEscape(text), "/runs?state=" + url.QueryEscape(text),
		"/runs/" + run, "/runs/" + run + "/now",
		"/questions", "/questions/now", "/questions/" + question, "/questions/" + question + "/now", "/health",
		"/sign-in?next=" + url.QueryEscape(text), "/link?code=" + url.QueryEscape(text),
		"/runs/none" + url.PathEscape(text), "/questions/none" + url.PathEscape(text),
	}
}

// No text creates an element or an attribute: each page has the same elements and
// attributes as with a plain word instead of the text.
func TestHostileTextsStayText(t *testing.T) {
	plain := pagesWith(t, "plain")
	for name, text := range hostile {
		t.Run(name, func(t *testing.T) {
			pages := pagesWith(t, text)
			for i, got := range pages {
				if want := plain[i]; !slices.Equal(got.elements, want.elements) {
					t.Errorf("%s: elements differ: %s", got.address, firstDifference(got.elements, want.elements))
				}
				checkPage(t, got)
			}
		})
	}
}

// A text of a megabyte is shortened on every page, and complete in the saved file.
func TestHugeTexts(t *testing.T) {
	huge := strings.Repeat(`<b onclick="x">`, 70_000)
	s := serve(t, nil)
	b := s.signIn("olga", auth.ScopeAdmin)
	id := s.past("", "ann", "plain")
	q := s.ask("ann", "plain")
	known := map[string]bool{}
	for _, address := range addresses(id, q.ID, "plain") {
		for _, element := range parse(t, address, b.get(address)).elements {
			known[element] = true
		}
	}
	// of the hints that a text is shortened
	for _, element := range []string{"p[class]", "a[href]", "a[href id]", "p[class role]"} {
		known[element] = true
	}
	id = hugeRun(s, huge)
	for _, address := range []string{"/runs", "/runs/" + id, "/runs/" + id + "/now"} {
		got := b.get(address)
		page := parse(t, address, got)
		if got.status != http.StatusOK || len(got.body) > 3<<20 {
			t.Errorf("%s: got %d with %d bytes", address, got.status, len(got.body))
		}
		for _, element := range page.elements {
			if !known[element] {
				t.Errorf("%s: got the element %s", address, element)
			}
		}
		checkPage(t, page)
	}
	if got := b.get("/runs/" + id + "/text/stdout"); got.body != huge {
		t.Errorf("the saved text has %d bytes, want %d", len(got.body), len(huge))
	}
}

// hugeRun is a past run with huge output and code; its records in the log are bounded.
func hugeRun(s *served, huge string) string {
	id := s.past("", "ann", huge[:2000])
	s.record(id, huge)
	return id
}

// page is the elements and attributes of an answer.
type page struct {
	address  string
	elements []string // in order: name[attributes]
	values   []attribute
}

type attribute struct{ element, name, value string }

// pagesWith returns every page, with text in each foreign field.
func pagesWith(t *testing.T, text string) []page {
	t.Helper()
	s := serve(t, nil)
	s.past(text, "ann", "plain")
	run, question := s.past("", text, text), s.ask(text, text)
	s.going("ann", text)
	b := s.signIn("olga", auth.ScopeAdmin)
	var pages []page
	for _, address := range addresses(run, question.ID, text) {
		got := parse(t, address, b.get(address))
		got.address = strings.NewReplacer(run, "RUN", question.ID, "QUESTION").Replace(address)
		pages = append(pages, got)
	}
	wrong := b.send(http.MethodPost, "/sign-in", url.Values{"token": {text}, "next": {text}}, nil)
	return append(pages, parse(t, "a sign-in that fails", wrong))
}

func parse(t *testing.T, address string, a answer) page {
	t.Helper()
	if !strings.HasPrefix(a.header.Get("Content-Type"), "text/html; charset=utf-8") {
		t.Fatalf("%s: got %d %s", address, a.status, a.header.Get("Content-Type"))
	}
	p := page{address: address}
	for in := html.NewTokenizer(strings.NewReader(a.body)); ; {
		switch in.Next() {
		case html.ErrorToken:
			return p
		case html.StartTagToken, html.SelfClosingTagToken:
			token := in.Token()
			var names []string
			for _, attr := range token.Attr {
				names = append(names, attr.Key)
				p.values = append(p.values, attribute{token.Data, attr.Key, attr.Val})
			}
			slices.Sort(names)
			p.elements = append(p.elements, fmt.Sprint(token.Data, names))
		case html.CommentToken:
			t.Errorf("%s: got a comment: %s", address, in.Token())
		case html.TextToken:
			if i := strings.IndexFunc(string(in.Text()), isHidden); i >= 0 {
				t.Errorf("%s: a hidden character is shown as it is: %.80q", address, string(in.Raw())[max(0, i-20):])
			}
		}
	}
}

// isHidden reports whether a character of the corpus is one that no reader sees.
func isHidden(r rune) bool {
	return strings.ContainsRune(
		"\x00\x01\x1b\x7f\v\f\r\u0085\u2028\u2029\u202e\u2066\u200f\u061c\u200b\u00ad\ufeff\U000e0041", r)
}

// addressAttributes are the attributes whose URL a browser follows or loads.
var addressAttributes = map[string]bool{"href": true, "src": true, "action": true, "formaction": true, "hx-get": true,
	"hx-post": true, "data": true, "xlink:href": true}

// checkPage checks that no attribute contains a script or a style, and that every URL is a path of
// the console.
func checkPage(t *testing.T, p page) {
	t.Helper()
	for _, a := range p.values {
		switch {
		case addressAttributes[a.name]:
			if a.value != "#main" && (!strings.HasPrefix(a.value, "/") || strings.HasPrefix(a.value, "//") ||
				strings.Contains(a.value, `\`)) {
				t.Errorf("%s: <%s %s=%q> leads elsewhere", p.address, a.element, a.name, a.value)
			}
		case strings.HasPrefix(a.name, "on"), strings.HasPrefix(a.name, "hx-on"), a.name == "style", a.name == "srcdoc":
			t.Errorf("%s: <%s %s=%q>", p.address, a.element, a.name, a.value)
		}
	}
}

func firstDifference(got, want []string) string {
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			return fmt.Sprintf("number %d is %s, want %s", i, got[i], want[i])
		}
	}
	return fmt.Sprintf("there are %d, want %d", len(got), len(want))
}
