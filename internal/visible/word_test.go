package visible

import (
	"os/exec"
	"testing"
)

// A shell reads what Word writes as one word, the same text.
func TestWordIsOneWordOfAShell(t *testing.T) {
	for _, text := range []string{
		"crm", "größe", "", " ", "two words", "it's", `a"b`, `a\b`, "$HOME", "`id`", "$(id)", "a;b", "a&b", "a|b", "*",
		"~", "#x", "!x", "{a,b}", "[a]", "a>b", "/home/ann/my files/airlock.yaml", "k8s@prod", "10%",
	} {
		out, err := exec.Command("sh", "-c", "printf '<%s>' "+Word(text)).Output()
		if got, want := string(out), "<"+text+">"; err != nil || got != want {
			t.Errorf("sh reads %s as %s (%v), want %s", Word(text), got, err, want)
		}
	}
	for _, plain := range []string{"crm", "/etc/airlock/airlock.yaml", "a:b", "ann@example.com"} {
		if got := Word(plain); got != plain {
			t.Errorf("Word(%q) is %s, want no quotes", plain, got)
		}
	}
	if got, want := Word("a\u202eb\nc"), `'a\u{202e}b\nc'`; got != want {
		t.Errorf("invisible characters are written as %s, want %s", got, want)
	}
}
