package runner

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

func TestHolderLives(t *testing.T) {
	dead := exec.Command("true")
	if err := dead.Run(); err != nil {
		t.Fatal(err)
	}
	own := processIdentity(os.Getpid())
	for name, test := range map[string]struct {
		lock string
		want bool
	}{
		"this process":                           {own, true},
		"one that has ended":                     {fmt.Sprintf("%d 1", dead.Process.Pid), false},
		"an earlier process of this one's ID":    {fmt.Sprintf("%d 1", os.Getpid()), false},
		"no holder":                              {"", false},
		"what no Airlock wrote":                  {"airlock", false},
		"this process, cut off when it was told": {own[:len(own)-1], false},
	} {
		t.Run(name, func(t *testing.T) {
			lock := filepath.Join(t.TempDir(), lockName)
			if err := os.WriteFile(lock, []byte(test.lock), 0o600); err != nil {
				t.Fatal(err)
			}
			if got := holderLives(lock); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
	if holderLives(filepath.Join(t.TempDir(), "none")) {
		t.Error("got true for a lock that is not there, want false")
	}
}
