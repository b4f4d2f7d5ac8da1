package posture

import "testing"

func TestUsers(t *testing.T) {
	tests := []struct {
		name         string
		ids          string
		want         User // 0 means one of many
		outside      User
		wantNoUserAt bool
	}{
		{"the host", "0 0 4294967295", User{}, User{}, false},
		{"a container with 65536 users", "0 100000 65536", User{Nobody, Nobody}, User{165534, 165534}, false},
		{"in two parts", "0 1000 1\n1 100000 65535", User{Nobody, Nobody}, User{165533, 165533}, false},
		{"only root", "0 1000 1", User{}, User{}, true},
		{"none", "", User{}, User{}, true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			users := Users{parseMap(test.ids), parseMap(test.ids)}
			got, err := users.Pick("sb-1")
			if (err != nil) != test.wantNoUserAt {
				t.Fatalf("got %v, %v, want an error: %v", got, err, test.wantNoUserAt)
			}
			if err != nil {
				return
			}
			if test.want == (User{}) {
				if other, _ := users.Pick("sb-2"); got.UID < firstUser || got == other {
					t.Errorf("got %v and %v for two sandboxes, want two users of the range", got, other)
				}
				return
			}
			if out := users.Outside(got); got != test.want || out != test.outside {
				t.Errorf("got %v, outside %v, want %v and %v", got, out, test.want, test.outside)
			}
		})
	}
}
