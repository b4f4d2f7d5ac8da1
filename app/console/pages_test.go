package console_test

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/airlock-mcp/airlock/admission/agents"
	"github.com/airlock-mcp/airlock/admission/approval"
	"github.com/airlock-mcp/airlock/app/auth"
	"github.com/airlock-mcp/airlock/app/console"
	"github.com/airlock-mcp/airlock/internal/telemetry"
)

func TestRunsAreListedAndShown(t *testing.T) {
	s := serve(t, nil)
	past, now := s.past("", "ann", "plain"), s.going("ann", "print(6*7)")
	b := s.signIn("ann", auth.ScopeRun)
	list := b.get("/runs")
	for _, want := range []string{past, now, "running", "1 in progress", `hx-get="/runs/now"`} {
		if !strings.Contains(list.body, want) {
			t.Errorf("the list has no %q: %s", want, list.body)
		}
	}
	page := b.get("/runs/" + now)
	for _, want := range []string{"running", "print(6*7)", `aria-label="code"`, "Cancel the run",
		`hx-get="/runs/` + now + `/now"`} {
		if !strings.Contains(page.body, want) {
			t.Errorf("a run that goes on: no %q: %s", want, page.body)
		}
	}
	page = b.get("/runs/" + past)
	for _, want := range []string{"ask by plain; risk plain; approval APPROVED by plain", "<svg", "approval",
		"Save all of it", "5 ms", "plain/plain"} {
		if !strings.Contains(page.body, want) {
			t.Errorf("a past run: no %q: %s", want, page.body)
		}
	}
	if strings.Contains(page.body, "hx-get") || strings.Contains(page.body, "Cancel the run") {
		t.Errorf("a past run is asked for again: %s", page.body)
	}
	for address, want := range map[string]bool{
		"/runs?state=ok": false, "/runs?state=not+ok": true, "/runs?state=going+on": false, "/runs?text=PLAIN": true,
		"/runs?text=nothing": false, "/runs?page=2": false, "/runs?page=-1": true, "/runs?page=x": true,
	} {
		if got := strings.Contains(b.get(address).body, "/runs/"+past); got != want {
			t.Errorf("%s lists the past run: %v, want %v", address, got, want)
		}
	}
	titled := s.past("", "ann", "# Count the notes")
	found := b.get("/runs?text=count+the").body
	if !strings.Contains(found, "/runs/"+titled) || strings.Contains(found, past) {
		t.Errorf("a search for a title: got %s", found)
	}
	code := b.get("/runs/" + past + "/text/code")
	if code.body != "plain" || !strings.HasPrefix(code.header.Get("Content-Disposition"), "attachment") ||
		!strings.HasPrefix(code.header.Get("Content-Security-Policy"), "sandbox") ||
		code.header.Get("Content-Type") != "text/plain; charset=utf-8" ||
		code.header.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("the code: got %d %q %v", code.status, code.body, code.header)
	}
}

func TestRunsArePaged(t *testing.T) {
	s := serve(t, nil)
	for range 51 {
		s.past("", "ann", "plain")
	}
	b := s.signIn("ann", auth.ScopeRun)
	rows := regexp.MustCompile(`<th scope="row">`)
	first, second := b.get("/runs"), b.get("/runs?page=2")
	if got := len(rows.FindAllString(first.body, -1)); got != 50 ||
		!strings.Contains(first.body, `href="/runs?page=2"`) {
		t.Errorf("got %d runs on the first page", got)
	}
	if got := len(rows.FindAllString(second.body, -1)); got != 1 || strings.Contains(second.body, "Older") {
		t.Errorf("got %d runs on the second page", got)
	}
}

// Issue 27.11: the lists of the console can be limited to a period, and the links to other pages keep it.
func TestListsOfTheConsoleTakeAPeriod(t *testing.T) {
	book := &tokenBook{}
	s := serve(t, func(o *console.Options) { o.Tokens = book })
	book.tokens = s.tokens
	for range 51 {
		s.past("", "ann", "plain")
	}
	b := s.signIn("ann", auth.ScopeRun, auth.ScopeAdmin, auth.ScopeApprove, auth.ScopeAgents)
	s.ask("ann", "x")
	a, _, err := s.agents.Register(t.Context(), agents.Registration{Name: "a", Type: agents.Supervised,
		PrincipalID: "ann"}, "ann")
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile(`<th scope="row">`)
	for _, path := range []string{"/runs", "/tokens", "/agents", "/questions"} {
		if got := b.get(path + "?since=2020-01-01"); !rows.MatchString(got.body) {
			t.Errorf("%s since 2020: got %d %s, want rows", path, got.status, got.body)
		}
		if got := b.get(path + "?until=2020-01-01"); rows.MatchString(got.body) ||
			!strings.Contains(got.body, `href="`+path+`">Show all`) {
			t.Errorf("%s until 2020: got %d %s, want no row and the way to all", path, got.status, got.body)
		}
	}
	for _, path := range []string{"/runs", "/tokens", "/agents", "/questions", "/agents/" + a.ID} {
		if got := b.get(path + "?since=yesterday"); got.status != http.StatusOK ||
			!strings.Contains(got.body, "is not a time: write 7d") {
			t.Errorf("%s since yesterday: got %d %s, want the form of a time", path, got.status, got.body)
		}
	}
	if got := b.get("/agents/" + a.ID + "?until=2020-01-01").body; !strings.Contains(got,
		"It has not acted in this time") {
		t.Errorf("the page of an agent does not take a period: %s", got)
	}
	if got := b.get("/questions?since=2020-01-01").body; !strings.Contains(got,
		`hx-get="/questions/now?since=2020-01-01"`) {
		t.Errorf("the live part of the questions does not keep the period: %s", got)
	}
	if got := b.get("/runs?since=2020-01-01").body; !strings.Contains(got, `href="/runs?page=2&amp;since=2020-01-01"`) {
		t.Errorf("the second page does not keep the period: %s", got)
	}
}

func TestARunIsCancelled(t *testing.T) {
	s := serve(t, nil)
	id := s.going("ann", "x")
	b := s.signIn("ann", auth.ScopeRun)
	if got := b.send(http.MethodPost, "/runs/"+id+"/cancel", url.Values{}, nil); got.status != http.StatusForbidden ||
		s.runs.Going() != 1 {
		t.Errorf("without the form's token: got %d, and %d runs go on", got.status, s.runs.Going())
	}
	if got := b.post("/runs/"+id+"/cancel", nil); got.status != http.StatusSeeOther || s.runs.Going() != 0 {
		t.Errorf("got %d, and %d runs go on", got.status, s.runs.Going())
	}
	if got := b.get("/runs/" + id); !strings.Contains(got.body, "The run is cancelled.") {
		t.Errorf("the page does not say so: %s", got.body)
	}
	if got := b.get("/runs/" + id); strings.Contains(got.body, "The run is cancelled.") {
		t.Error("the page says so twice")
	}
}

// Objects of one person do not exist for another, at any path.
func TestCallersSeeTheirOwn(t *testing.T) {
	s := serve(t, nil)
	past, now, question := s.past("", "ann", "plain"), s.going("ann", "secret-of-ann"), s.ask("ann", "plain")
	bob, admin := s.signIn("bob", auth.ScopeRun, auth.ScopeApprove, auth.ScopeAudit), s.signIn("olga", auth.ScopeAdmin)
	for _, list := range []string{"/runs", "/runs/now", "/questions", "/questions/now"} {
		if got := bob.get(list); got.status != http.StatusOK || strings.Contains(got.body, past) ||
			strings.Contains(got.body, now) || strings.Contains(got.body, question.ID) {
			t.Errorf("%s: got %d %s, want nothing of ann's", list, got.status, got.body)
		}
	}
	for _, address := range []string{
		"/runs/" + past, "/runs/" + now, "/runs/" + now + "/now", "/runs/" + past + "/text/code",
		"/runs/" + now + "/text/stdout", "/runs/" + past + "/files/x",
		"/questions/" + question.ID, "/questions/" + question.ID + "/now", "/questions/" + question.ID + "/text",
		"/questions/" + question.ID + "/rule",
	} {
		got, none := bob.get(address),
			bob.get(strings.NewReplacer(past, "run_none", now, "run_none", question.ID, "apr_none").Replace(address))
		if got.status != http.StatusNotFound || withoutCSRF(got.body) != withoutCSRF(none.body) {
			t.Errorf("%s: got %d, want what does not exist: %s", address, got.status, got.body)
		}
		// This console has no rules to propose one beside.
		if !strings.HasSuffix(address, "/files/x") && !strings.HasSuffix(address, "/rule") {
			if got := admin.get(address); got.status != http.StatusOK {
				t.Errorf("%s: an admin got %d", address, got.status)
			}
		}
	}
	if got := bob.post("/runs/"+now+"/cancel", nil); got.status != http.StatusNotFound || s.runs.Going() != 1 {
		t.Errorf("cancelling ann's run: got %d", got.status)
	}
	if got := bob.post("/questions/"+question.ID, url.Values{"answer": {"allow"},
		"digest": {s.desk.Posted()[0].Digest}}); got.status != http.StatusNotFound || s.desk.Open() != 1 {
		t.Errorf("answering ann's question: got %d", got.status)
	}
	// The same name from another issuer, or as the user of the machine, is someone else.
	if got := s.signIn("ann", auth.ScopeRun).get("/runs/" + past); got.status != http.StatusOK {
		t.Errorf("ann: got %d", got.status)
	}
}

func withoutCSRF(page string) string { return csrfField.ReplaceAllString(page, "") }

// A page that a caller may not see is not in the navigation, and is refused.
func TestScopes(t *testing.T) {
	s := serve(t, nil)
	q := s.ask("ann", "plain")
	for scope, may := range map[string]map[string]bool{
		auth.ScopeRun: {"/runs": true}, auth.ScopeApprove: {"/questions": true}, auth.ScopeVerify: {},
		auth.ScopeAdmin: {"/runs": true, "/questions": true},
	} {
		b := s.signIn("ann", scope)
		home := b.get("/health").body
		for _, address := range []string{"/runs", "/questions"} {
			if got := strings.Contains(home, `<a href="`+address+`"`); got != may[address] {
				t.Errorf("%s: %s is in the navigation: %v", scope, address, got)
			}
			got := b.get(address)
			if may[address] != (got.status == http.StatusOK) || !may[address] &&
				(got.status != http.StatusForbidden || !strings.Contains(got.body, "needs the scope")) {
				t.Errorf("%s: %s: got %d %s", scope, address, got.status, got.body)
			}
		}
		if !may["/questions"] {
			if got := b.post("/questions/"+q.ID, url.Values{"answer": {"allow"},
				"digest": {s.desk.Posted()[0].Digest}}); got.status != http.StatusForbidden {
				t.Errorf("%s: answering: got %d, want 403", scope, got.status)
			}
		}
		if got := b.get("/"); got.status != http.StatusSeeOther {
			t.Errorf("%s: the first page: got %d", scope, got.status)
		}
	}
	if s.desk.Open() != 1 {
		t.Error("the question is open no longer")
	}
}

func TestAQuestionIsAnswered(t *testing.T) {
	s := serve(t, nil)
	b := s.signIn("ann", auth.ScopeApprove)
	for answer, want := range map[string]approval.Verdict{
		"allow":     {Answer: approval.Yes, By: "ann, console"},
		"allow-run": {Answer: approval.Yes, By: "ann, console", For: approval.Extent{Reach: approval.ThisRun}},
		"deny":      {Answer: approval.No, By: "ann, console", Reason: "not today\\u{202e}"},
	} {
		q := s.ask("ann", answer)
		page := b.get("/questions/" + q.ID)
		for _, shown := range []string{"May this call happen?", "arguments, complete:",
			`<span class="removed">-` + answer, `<span class="added">&#43;b` + answer, q.ID} {
			if !strings.Contains(page.body, shown) {
				t.Errorf("the page has no %q: %s", shown, page.body)
			}
		}
		form := url.Values{"answer": {answer}, "reason": {" not today\u202e\n"},
			"digest": {digestField.FindStringSubmatch(page.body)[1]}}
		if got := b.post("/questions/"+q.ID, form); got.status != http.StatusSeeOther {
			t.Errorf("%s: got %d %s", answer, got.status, got.body)
		}
		if got := <-q.verdict; got.Answer != want.Answer || got.By != want.By || got.For != want.For ||
			got.Reason != want.Reason {
			t.Errorf("%s: got %+v, want %+v", answer, got, want)
		}
		if got := b.post("/questions/"+q.ID, form); got.status != http.StatusSeeOther {
			t.Errorf("%s, again: got %d", answer, got.status)
		}
		if got := b.get("/questions"); !strings.Contains(
			got.body, "Your answer came too late. The question was answered already: ") {
			t.Errorf("%s, again: the page does not say so: %s", answer, got.body)
		}
	}
}

// Issue 31: a link in a message gives no rights, leads a person who may answer to the question once, and is not used up
// by others.
func TestALinkToAQuestion(t *testing.T) {
	s := serve(t, nil)
	q := s.ask("ann", "first")
	link := s.console.AskLink(q.ID)
	code := url.Values{"code": {strings.TrimPrefix(link, "/ask?code=")}}
	nobody := s.browser()
	if got := nobody.get(link); got.status != http.StatusOK || strings.Contains(got.body, q.ID) {
		t.Errorf("a preview: got %d %s", got.status, got.body)
	}
	open := func(b *browser) answer { return b.send(http.MethodPost, "/ask", code, nil) }
	if got := open(nobody); got.header.Get("Location") != "/sign-in?next="+url.QueryEscape(link) {
		t.Errorf("without a session: got %d %s", got.status, got.header.Get("Location"))
	}
	for _, other := range []*browser{s.signIn("bob", auth.ScopeApprove), s.signIn("ann", auth.ScopeRun)} {
		if got := open(other); got.status != http.StatusNotFound {
			t.Errorf("a person who may not answer: got %d", got.status)
		}
	}
	b := s.signIn("ann", auth.ScopeApprove)
	if got := open(b); got.header.Get("Location") != "/questions/"+q.ID {
		t.Errorf("got %d %s, want the question", got.status, got.header.Get("Location"))
	}
	if got := open(b); got.header.Get("Location") != "/" {
		t.Errorf("again: got %d %s", got.status, got.header.Get("Location"))
	}
	if got := s.desk.Open(); got != 1 {
		t.Errorf("got %d open questions, want 1: a link answers nothing", got)
	}
	other := s.console.AskLink(q.ID)
	s.console.EndLinks(q.ID)
	code.Set("code", strings.TrimPrefix(other, "/ask?code="))
	if got := open(b); got.header.Get("Location") != "/" {
		t.Errorf("after its question: got %d %s", got.status, got.header.Get("Location"))
	}
}

// Issue 31: an approval for longer covers the next call of the tool, is shown with its use, and can be withdrawn.
func TestApprovalsForLonger(t *testing.T) {
	s := serve(t, nil)
	b, other := s.signIn("ann", auth.ScopeApprove), s.signIn("bob", auth.ScopeApprove)
	q := s.ask("ann", "first")
	page := b.get("/questions/" + q.ID)
	form := url.Values{"answer": {"allow-until"}, "until": {"yesterday"},
		"digest": {digestField.FindStringSubmatch(page.body)[1]}}
	if got := b.post("/questions/"+q.ID, form); got.status != http.StatusBadRequest {
		t.Errorf("without a date: got %d", got.status)
	}
	form.Set("until", s.clock.Now().AddDate(0, 0, 7).Format(time.DateOnly))
	if got := b.post("/questions/"+q.ID, form); got.status != http.StatusSeeOther {
		t.Fatalf("got %d %s", got.status, got.body)
	}
	if got := <-q.verdict; got.For.Reach != approval.UntilDate {
		t.Errorf("got %+v, want a date", got)
	}
	next := q.Question
	next.ID = telemetry.NewID("apr")
	if got, err := s.desk.Ask(t.Context(), next); err != nil || !got.ByGrant {
		t.Errorf("the next call: got %+v, %v", got, err)
	}
	list := b.get("/questions").body
	action := regexp.MustCompile(`action="(/questions/grants/[^"]+)"`).FindStringSubmatch(list)
	if action == nil || !strings.Contains(list, "<td>1</td>") {
		t.Fatalf("the grant is not shown with its use: %s", list)
	}
	if strings.Contains(other.get("/questions").body, "Withdraw") {
		t.Error("another person sees the grant")
	}
	if got := other.post(action[1], nil); got.status != http.StatusNotFound {
		t.Errorf("another person withdraws it: got %d", got.status)
	}
	got := b.post(action[1], nil)
	if left, err := s.desk.Grants(t.Context()); got.status != http.StatusSeeOther || err != nil || len(left) != 0 {
		t.Errorf("withdrawing: got %d, %d grants, %v", got.status, len(left), err)
	}
}

var digestField = regexp.MustCompile(`name="digest" value="([^"]*)"`)

// An answer counts for the question that the page showed, and must be yes or no.
func TestAnswersThatDoNotCount(t *testing.T) {
	s := serve(t, nil)
	b := s.signIn("ann", auth.ScopeApprove)
	q, other := s.ask("ann", "one"), s.ask("ann", "other")
	digest := digestField.FindStringSubmatch(b.get("/questions/" + q.ID).body)[1]
	otherDigest := digestField.FindStringSubmatch(b.get("/questions/" + other.ID).body)[1]
	for name, test := range map[string]struct {
		form   url.Values
		status int
	}{
		"another question's digest": {url.Values{"answer": {"allow"}, "digest": {otherDigest}}, http.StatusConflict},
		"no digest":                 {url.Values{"answer": {"allow"}}, http.StatusConflict},
		"no answer":                 {url.Values{"digest": {digest}}, http.StatusBadRequest},
		"an unknown answer":         {url.Values{"digest": {digest}, "answer": {"Allow"}}, http.StatusBadRequest},
		"another session's form": {url.Values{"digest": {digest}, "answer": {"allow"}, "csrf": {"x"}},
			http.StatusForbidden},
	} {
		if got := b.post("/questions/"+q.ID, test.form); got.status != test.status {
			t.Errorf("%s: got %d, want %d", name, got.status, test.status)
		}
	}
	if got := b.get("/questions/" + q.ID + "?answer=allow&digest=" +
		url.QueryEscape(digest)); got.status != http.StatusOK || s.desk.Open() != 2 {
		t.Errorf("a GET: got %d, and %d questions are open", got.status, s.desk.Open())
	}
}

// The page of a question shows that another person has answered it.
func TestAQuestionIsAnsweredElsewhere(t *testing.T) {
	s := serve(t, nil)
	b, other := s.signIn("ann", auth.ScopeApprove), s.signIn("ann", auth.ScopeApprove)
	q := s.ask("ann", "plain")
	page := b.get("/questions/" + q.ID)
	if !strings.Contains(b.get("/questions/"+q.ID+"/now").body, "waits for an answer") {
		t.Error("an open question is not said to be open")
	}
	other.post("/questions/"+q.ID, url.Values{"answer": {"deny"},
		"digest": {digestField.FindStringSubmatch(page.body)[1]}})
	<-q.verdict
	if got := b.get("/questions/" + q.ID + "/now"); got.status != http.StatusOK ||
		!strings.Contains(got.body, "denied by ann, console") {
		t.Errorf("got %d %s", got.status, got.body)
	}
	if got := b.get("/questions/" + q.ID); got.status != http.StatusOK || strings.Contains(got.body, `value="allow"`) {
		t.Errorf("got %d %s", got.status, got.body)
	}
}
