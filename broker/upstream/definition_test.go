package upstream

import (
	"testing"
	"time"
)

// The list of a server in use is read regularly, because a server may change a definition
// without a notification.
func TestAListIsReadAgainWhileItsServerIsCalled(t *testing.T) {
	s := newServer(Config{ID: "files"}, Options{}, nil, nil)
	for _, test := range []struct {
		name      string
		old, took time.Duration
		want      bool
	}{
		{"of just now", 0, 0, false},
		{"older", 3 * time.Second, time.Millisecond, true},
		{"older, and it takes long", 3 * time.Second, time.Second, false},
		{"much older, and it takes long", time.Minute, time.Second, true},
	} {
		s.read, s.took = time.Now().Add(-test.old), test.took
		s.lookMeanwhile()
		s.lookMeanwhile() // once is enough
		if asked := len(s.announced) > 0; asked != test.want {
			t.Errorf("%s: asked %v, want %v", test.name, asked, test.want)
		}
		if test.want {
			<-s.announced
		}
		if len(s.announced) > 0 {
			t.Errorf("%s: asked twice", test.name)
		}
	}
}
