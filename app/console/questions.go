package console

import (
	"errors"
	"fmt"
	"html/template"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/diff"

	"github.com/airlock-mcp/airlock/admission/approval"
	"github.com/airlock-mcp/airlock/app/auth"
	"github.com/airlock-mcp/airlock/app/listing"
	"github.com/airlock-mcp/airlock/app/rules"
	"github.com/airlock-mcp/airlock/internal/caller"
	"github.com/airlock-mcp/airlock/internal/telemetry"
)

// questionsSection shows the calls that wait for a person, and takes the answers.
func questionsSection() section {
	return section{name: "Questions", path: "/questions", scope: auth.ScopeApprove, template: "questions",
		pages: []page{
			{pattern: "GET /questions", scope: auth.ScopeApprove, show: showQuestions},
			{pattern: "GET /questions/now", scope: auth.ScopeApprove, show: func(c *Console, q *query) (view, error) {
				v, err := showQuestions(c, q)
				v.part = "now"
				return v, err
			}},
			{pattern: "GET /questions/count", scope: auth.ScopeApprove, show: func(c *Console, q *query) (view, error) {
				return view{part: "count", data: c.waitingFor(q)}, nil
			}},
		}}
}

// waitingFor returns how many questions the caller can see.
func (c *Console) waitingFor(q *query) (n int) {
	for _, posted := range c.opts.Approvals.Posted() {
		if reachesQuestion(q.who, caller.See, posted) {
			n++
		}
	}
	return n
}

// questionSection shows one question.
func questionSection() section {
	return section{path: "/questions", scope: auth.ScopeApprove, template: "question", pages: []page{
		{pattern: "GET /questions/{question}", scope: auth.ScopeApprove, show: showQuestion},
		{pattern: "GET /questions/{question}/now", scope: auth.ScopeApprove, show: showQuestionNow},
		{pattern: "GET /questions/{question}/text", scope: auth.ScopeApprove, show: saveQuestion},
		{pattern: "POST /questions/{question}", scope: auth.ScopeApprove, show: answerQuestion},
		{pattern: "POST /questions/grants/{grant}", scope: auth.ScopeApprove, show: withdrawGrant},
	}}
}

// questionsPage is the data of the list.
type questionsPage struct {
	Filter periodFilter // by the time when they were asked, and grants by the time when they were given
	Here   string       // the address of the live part, with the filter
	Rows   []questionRow
	Grants []approval.Grant
	// Missing is a sentence about nodes that do not answer; may be empty.
	Missing string
}

// questionRow is a question in the list.
type questionRow struct {
	approval.Posted
	Left      time.Duration
	Suspended time.Time // since when the run waits without a sandbox; zero if it does not, or is of another node
}

func (c *Console) left(q approval.Posted) time.Duration {
	return max(0, q.Expires.Sub(c.opts.Now())).Truncate(time.Second)
}

func showQuestions(c *Console, q *query) (view, error) {
	p := questionsPage{Filter: c.periodOf(q.URL.Query())}
	p.Here = p.Filter.address("/questions/now", url.Values{})
	for _, posted := range c.opts.Approvals.Posted() {
		if reachesQuestion(q.who, caller.See, posted) && p.Filter.period.Contains(posted.Asked) {
			since := c.opts.Lists.Registry().SuspendedSince(posted.RunID)
			p.Rows = append(p.Rows, questionRow{posted, c.left(posted), since})
		}
	}
	grants, err := c.grantsOf(q)
	p.Grants = slices.DeleteFunc(grants, func(g approval.Grant) bool { return !p.Filter.period.Contains(g.Given) })
	p.Missing = listing.Missing(c.node.Silent())
	if err != nil { // questions of this node can be answered without the database
		c.opts.Logger.WarnContext(q.Context(), "the approvals that cover further calls could not be read",
			slog.Any(telemetry.KeyError, err))
		p.Missing = strings.TrimSpace(p.Missing + " The approvals that cover further calls could not be read.")
	}
	return view{title: "Questions", data: p}, nil
}

// grantsOf returns the grants that a person can withdraw.
func (c *Console) grantsOf(q *query) ([]approval.Grant, error) {
	list, err := c.opts.Approvals.Grants(q.Context())
	return slices.DeleteFunc(list, func(g approval.Grant) bool { return !g.MayEnd(q.who) }), err
}

func withdrawGrant(c *Console, q *query) (view, error) {
	id := q.PathValue("grant")
	withdrawn, err := c.opts.Approvals.Withdraw(q.Context(), id, q.who.Name()+", console",
		func(g approval.Grant) bool { return g.MayEnd(q.who) })
	switch {
	case err != nil:
		return view{}, err
	case !withdrawn:
		return view{}, notFound("approval")
	}
	q.notify("Withdrawn: the next call of the tool is asked about again.")
	return view{redirect: "/questions"}, nil
}

// reachesQuestion reports whether a caller may do something with a question.
func reachesQuestion(who caller.Caller, act caller.Act, q approval.Posted) bool {
	return who.May(caller.People, act, q.Object(q.Roles()))
}

// questionPage is the data of the page of a question.
type questionPage struct {
	approval.Posted
	Text  string // all that the answer applies to, in the same form as elsewhere
	Whole bool   // Text and Arguments are not shortened
	Asks  string // the subject of the question, in one sentence
	// Arguments are the arguments alone, as in Text.
	Arguments string
	Changes   []change
	Grants    bool // an approval can be extended to the run
	Longer    bool // and to more
	// AnyArguments is the query of the page of a rule that covers the tool with any arguments.
	AnyArguments template.URL
	Yes          string // the label of the button that agrees; empty if the person cannot agree here
	No           string // why not
	Gone         string // the outcome; empty if it is open
	Left         time.Duration
	Here         string // the address of the live part
}

// change is the line-by-line diff of a text and its replacement.
type change struct {
	Where string
	Lines []diffLine
	Cut   bool
}

const (
	maxQuestionText = 64 << 10 // bytes that a page shows of a question
	maxDiffLines    = 2000
)

// findQuestion returns an open question. If it is closed, gone is its outcome. Questions that
// the caller may not answer are not found.
func (c *Console) findQuestion(q *query) (posted approval.Posted, gone string, err error) {
	posted, asking, err := c.opts.Approvals.Find(q.PathValue("question"))
	if asking.Principal == "" || !q.who.May(caller.People, caller.Change, asking.Object(strings.Fields(asking.Roles))) {
		return approval.Posted{}, "", notFound("question")
	}
	if errors.Is(err, approval.ErrClosed) {
		return approval.Posted{}, sentence(err.Error()), nil
	}
	return posted, "", err
}

// sentence returns text with a capital letter at the beginning and a full stop at the end.
func sentence(text string) string {
	if text == "" {
		return ""
	}
	return strings.ToUpper(text[:1]) + strings.TrimSuffix(text[1:], ".") + "."
}

func showQuestion(c *Console, q *query) (view, error) {
	posted, gone, err := c.findQuestion(q)
	if err != nil {
		return view{}, err
	}
	p := questionPage{Posted: posted, Gone: gone, Here: "/questions/" + url.PathEscape(q.PathValue("question")) +
		"/now"}
	if gone != "" {
		return view{title: "A question that is over", data: p}, nil
	}
	p.Text = approval.Excerpt(posted.Question, maxQuestionText)
	p.Whole = p.Text == approval.Text(posted.Question)
	var whole bool
	p.Arguments, whole = approval.Arguments(posted.Question, maxQuestionText)
	p.Whole = p.Whole && whole
	p.Asks = fmt.Sprintf("A program that runs for %s wants to call %s of the server %s.", posted.Principal,
		posted.ToolName, posted.ServerID)
	if posted.CallerKind == string(caller.Contained) {
		p.Asks = fmt.Sprintf("The server %s wants to connect to %s.", posted.Principal, posted.ServerID)
	}
	if posted.Elicitation != nil {
		p.Asks = fmt.Sprintf("The server %s asks %s something while a call of its tool %s is made.", posted.ServerID,
			posted.Principal, posted.ToolName)
	}
	p.Left, p.Yes, p.Grants = c.left(posted), "Allow once", posted.Elicitation == nil
	p.Longer = p.Grants && posted.Allows(approval.Extent{Reach: approval.UntilDate}) == nil
	p.AnyArguments = template.URL(url.Values{"any": rules.ArgumentNames(posted.Question)}.Encode())
	title := "May this call happen?"
	if e := posted.Elicitation; e != nil {
		title, p.Yes = "A server asks", "Agree"
		if e.NeedsValues {
			p.Yes, p.No = "", "Only the agent's host can fill in this form."
		}
	} else {
		p.Changes = changesOf(posted.Question)
	}
	switch err := c.opts.Approvals.OwnCheck(q.who, posted.Asking); {
	case errors.Is(err, approval.ErrOwn):
		p.Yes, p.No, p.Longer = "", sentence(err.Error()), false
	case err != nil:
		return view{}, err
	}
	return view{title: title, data: p}, nil
}

// showQuestionNow renders the state of the question, next to a form that is not replaced.
func showQuestionNow(c *Console, q *query) (view, error) {
	posted, gone, err := c.findQuestion(q)
	if err != nil {
		return view{}, err
	}
	return view{part: "now", data: questionPage{Posted: posted, Gone: gone, Left: c.left(posted)}}, nil
}

// saveQuestion sends the whole text of a question.
func saveQuestion(c *Console, q *query) (view, error) {
	posted, gone, err := c.findQuestion(q)
	switch {
	case err != nil:
		return view{}, err
	case gone != "":
		return view{}, notFound("question")
	}
	return view{file: &download{name: posted.ID + ".txt", content: []byte(approval.Text(posted.Question)),
		isText: true}}, nil
}

// changesOf returns the changes that the arguments of a call describe.
func changesOf(q approval.Question) []change {
	var list []change
	for _, found := range approval.Changes(q.Arguments) {
		list = append(list, diffOf(found))
	}
	return list
}

// diffOf returns the line-by-line diff of two texts.
func diffOf(found approval.Change) change {
	const header = 3 // lines that name what is compared
	lines := diffLines(diff.Diff("before", ended(found.Before), "after", ended(found.After)))
	if len(lines) < header { // the texts are equal
		return change{Where: found.Where}
	}
	lines = lines[header:]
	return change{found.Where, lines[:min(len(lines), maxDiffLines)], len(lines) > maxDiffLines}
}

// ended returns a text that ends with a newline.
func ended(text string) []byte {
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return []byte(text)
}

// answerQuestion passes on an answer, if the question is still the one that the page showed.
func answerQuestion(c *Console, q *query) (view, error) {
	posted, gone, err := c.findQuestion(q)
	if err != nil {
		return view{}, err
	}
	list := view{redirect: "/questions"}
	if gone != "" {
		q.notify("Your answer came too late. %s", gone)
		return list, nil
	}
	r := approval.Answering(q.who, posted, "console")
	r.Digest = q.PostForm.Get("digest")
	switch q.PostForm.Get("answer") {
	case "allow":
		r.Approve = true
	case "allow-run":
		r.Approve, r.For.Reach = true, approval.ThisRun
	case "allow-session":
		r.Approve, r.For.Reach = true, approval.ThisSession
	case "allow-until":
		r.Approve = true
		if r.For, err = approval.ParseExtent(q.PostForm.Get("until"), c.opts.Now()); err != nil || r.For.Reach !=
			approval.UntilDate {
			return view{}, &refusal{http.StatusBadRequest, "The form has no date that is in the next 90 days.", ""}
		}
	case "deny":
		r.Reason = q.PostForm.Get("reason")
	default:
		return view{}, &refusal{http.StatusBadRequest, "The form says neither yes nor no.", ""}
	}
	err = c.opts.Approvals.Answer(r)
	switch {
	case errors.Is(err, approval.ErrClosed):
		q.notify("Your answer came too late. %s", sentence(err.Error()))
		return list, nil
	case errors.Is(err, approval.ErrChanged):
		return view{}, &refusal{http.StatusConflict, "The page shows another question than the one that is open.",
			"Open the question again, and read it."}
	case errors.Is(err, approval.ErrNotAsked), errors.Is(err, approval.ErrAgreed), errors.Is(err, approval.ErrNoPerson),
		errors.Is(err, approval.ErrExtent), errors.Is(err, approval.ErrOwn):
		return view{}, &refusal{http.StatusForbidden, sentence(err.Error()), ""}
	case errors.Is(err, approval.ErrNeedsValues):
		return view{}, &refusal{http.StatusConflict, sentence(err.Error()), ""}
	case err != nil:
		return view{}, err
	}
	q.notify("%s: %s/%s.", answered(r), posted.ServerID, posted.ToolName)
	return list, nil
}

func answered(r approval.Response) string {
	switch {
	case r.For.Reach == approval.ThisRun:
		return "Allowed for the whole run"
	case r.For.Reach != approval.ThisCall:
		return "Allowed " + r.For.Describe()
	case r.Approve:
		return "Allowed once"
	}
	return "Denied"
}
