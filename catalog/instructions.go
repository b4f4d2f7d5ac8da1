package catalog

import (
	"strings"

	"github.com/airlock-mcp/airlock/internal/lazyregexp"
)

// An injection is one pattern of prompt injection: text that addresses the model instead
// of describing a tool. The expression is slow, so it is only evaluated if the text
// contains one word of each group. Text is matched in lower case, with runs of white space
// replaced by one space.
type injection struct {
	words      [][]string
	expression *lazyregexp.Regexp
}

// injections follow the published attacks against MCP clients: instructions to ignore
// earlier instructions, to hide something from the user, to read keys and pass them on, to
// send the conversation away, and markers that imitate the chat format. Instructions on
// how to use a tool ("call this before that one") are not injections.
var injections = []injection{
	{[][]string{{"ignor", "disregard", "forget", "overrid"},
		{"instruction", "prompt", "rule", "guideline", "message", "directive", "polic", "context"}},
		lazyregexp.New(`\b(ignor|disregard|forget|overrid)\w* (all |any |of |the |your |my |these |those |every )*` +
			`(previous|prior|above|earlier|preceding|existing|original|other|system|safety|security|` +
			`user'?s?)\b[^.]{0,40}\b(instruction|prompt|rule|guideline|message|directive|polic|context)`)},
	{[][]string{{"not", "n't", "dont", "never", "without", "avoid"},
		{"tell", "mention", "inform", "notify", "reveal", "disclos", "alert", "warn", "let"}, people},
		lazyregexp.New(`\b(do not|don'?t|must not|mustn'?t|never|without|avoid) (ever ` +
			`)?(tell|mention|inform|notify|reveal|disclos|alert|warn|let)\w*\b[^.]{0,60}\b(user|human|operator)s?\b`)},
	{[][]string{{"keep", "hid", "conceal"}, {"from the"}, people},
		lazyregexp.New(`\b(keep|hid|conceal)\w*\b[^.]{0,50}\bfrom the (user|human|operator)\b`)},
	{[][]string{{"without"}, {"user", "human", "confirm", "approval", "permission", "consent"}},
		lazyregexp.New(`\bwithout (asking|waiting for|requesting|getting|seeking) (\w+ ` +
			`){0,3}(user|human|confirm\w*|approval|permission|consent)\b`)},
	{[][]string{{"<"}, {"important", "critical", "/", "|", "sys"}},
		lazyregexp.New(`<\s*/?\s*(important|critical)\s*>|` + // an opening one like <secret> is an honest placeholder
			`<\s*/\s*(system|secret|instructions?|assistant|admin|hidden)\s*>|<\|\s*\w+\s*\|>|<<\s*/?sys\s*>>`)},
	{[][]string{{"[inst]", "[/inst]", "[system]"}}, lazyregexp.New(`\[/?inst\]|\[system\]`)},
	{[][]string{{".ssh", "id_rsa", "id_ed25519", ".aws/", "mcp.json", "/etc/passwd", "/etc/shadow", ".netrc",
		".git-credentials", "claude_desktop_config"}},
		lazyregexp.New(`\b(read|open|cat|load|fetch|include|pass|send|attach|upload|access|put|provide|retrieve|` +
			`get)\w*\b.{0,120}(\.ssh\b|id_rsa|id_ed25519|\.aws/|mcp\.json|/etc/(passwd|shadow)|\.netrc|` +
			`\.git-credentials|claude_desktop_config)`)},
	{[][]string{{"send", "forward", "transmit", "exfiltrat", "leak", "bcc", "append", "attach", "include", "pass"},
		{"conversation", "history", "prompt", "credential", "key", "secret", "password", "environment"},
		{"entire", "full", "whole", "all", "complete", "previous", "user"}},
		lazyregexp.New(`\b(send|forward|transmit|exfiltrat|leak|bcc|append|attach|include|pass)\w*\b[^.]{0,60}` +
			`\b(entire |full |whole |all |complete |previous |user'?s? )+[^.]{0,20}` +
			`(conversations?|chat history|system prompt|credentials?|api keys?|secrets?|passwords?|private ` +
			`keys?|message history|environment variables)\b[^.]{0,60}\b(to|in|as|into|at)\b`)},
	{[][]string{{"instruction", "prompt", "directive", "message", "note"},
		{":", "model", "assistant", "ai", "llm", "agent"}},
		lazyregexp.New(`\b(new|updated|revised|real|actual|hidden|additional) (system ` +
			`)?(instructions?|prompt|directives?) ?(:|for the ` +
			`(model|assistant|ai|llm|agent))|\b(instructions?|message|note|directives?) (to|for) the ` +
			`(model|assistant|ai|llm|agent)\b`)},
	{[][]string{{"you are now", "act as", "pretend"}},
		lazyregexp.New(`\byou are now (an?|the|in|free|no|my)\b|\b(act|pretend) (as|to be) (if you (are|were) )?` +
			`(an? |the )?(unrestricted|system|admin\w*|root|developer mode|different (ai|assistant|model))`)},
	{[][]string{{"jailbreak", "anything", "exfiltrat"}},
		lazyregexp.New(`\bjailbreak (mode|yourself)|\bdo anything now\b|\bexfiltrat(e|ing) ` +
			`(the|all|any|user|this|your|it)\b`)},
}

// people are the ones from whom something is to be hidden.
var people = []string{"user", "human", "operator"}

// publicKey matches the path of an SSH public key, which a tool may ask for.
var publicKey = lazyregexp.New(`\S*\bid_\w+\.pub\b`)

// addressesModel reports whether text gives instructions to the model. It does not find
// every injection. Text that it misses is still only text: policies decide every call.
func addressesModel(text string) bool {
	text = strings.Join(strings.Fields(strings.ToLower(foldWidth(text))), " ")
	if strings.Contains(text, ".pub") {
		text = publicKey.ReplaceAllString(text, "")
	}
	for _, l := range injections {
		if l.mayMatch(text) && l.expression.MatchString(text) {
			return true
		}
	}
	return false
}

func (l *injection) mayMatch(text string) bool {
	for _, group := range l.words {
		if !containsAny(text, group) {
			return false
		}
	}
	return true
}

func containsAny(text string, words []string) bool {
	for _, word := range words {
		if strings.Contains(text, word) {
			return true
		}
	}
	return false
}

// foldWidth turns full-width letters and signs into the ASCII ones that they
// look like (Unicode block Halfwidth and Fullwidth Forms), and typographic
// apostrophes into plain ones.
func foldWidth(text string) string {
	return strings.Map(func(c rune) rune {
		switch {
		case c >= 0xFF01 && c <= 0xFF5E:
			return c - 0xFF01 + '!'
		case c == '’' || c == 'ʼ':
			return '\''
		}
		return c
	}, text)
}
