package config

import (
	"strings"
	"testing"
	"time"
)

func TestQuietHours(t *testing.T) {
	night := QuietHours{"22:00", "07:00", "Europe/Berlin"}
	noon := QuietHours{"12:00", "13:30", "UTC"}
	for _, test := range []struct {
		quiet     QuietHours
		now, want string
	}{
		{QuietHours{}, "2026-01-10T03:00:00Z", "2026-01-10T03:00:00Z"},
		{night, "2026-01-10T20:59:59Z", "2026-01-10T20:59:59Z"},
		{night, "2026-01-10T21:00:00Z", "2026-01-11T06:00:00Z"},
		{night, "2026-01-11T05:59:00Z", "2026-01-11T06:00:00Z"},
		{night, "2026-01-11T06:00:00Z", "2026-01-11T06:00:00Z"},
		{night, "2026-12-31T23:30:00Z", "2027-01-01T06:00:00Z"},
		{night, "2026-03-28T22:00:00Z", "2026-03-29T05:00:00Z"}, // summer time begins in this night
		{night, "2026-10-24T21:00:00Z", "2026-10-25T06:00:00Z"}, // and ends in this one
		{noon, "2026-01-10T12:00:00Z", "2026-01-10T13:30:00Z"},
		{noon, "2026-01-10T13:30:00Z", "2026-01-10T13:30:00Z"},
	} {
		now, err := time.Parse(time.RFC3339, test.now)
		if err != nil {
			t.Fatal(err)
		}
		if got := test.quiet.Awake(now).UTC().Format(time.RFC3339); got != test.want {
			t.Errorf("%v at %s: got %s, want %s", test.quiet, test.now, got, test.want)
		}
	}
}

func TestApprovalsAreChecked(t *testing.T) {
	const roles = "auth: {roles: {oncall: {principals: [ann]}}}\n"
	const hook = "approvals: {webhooks: {a: "
	for text, want := range map[string]string{
		hook + "{url: 'https://chat.example/h?k=1', secret: 'keyring:hook'}}}":   "",
		hook + "{url: 'http://127.0.0.1:9/h', secret: 'keyring:hook'}}}":         "",
		hook + "{url: 'http://chat.example/h', secret: 'keyring:hook'}}}":        "must be an https URL",
		hook + "{url: 'https://u:p@chat.example/h', secret: 'keyring:hook'}}}":   "without a user",
		hook + "{url: 'https://chat.example/h'}}}":                               "needs a url and a secret",
		"approvals: {quietHours: {from: '22:00', to: '7:00'}}":                   "hours and minutes",
		"approvals: {quietHours: {from: '22:00', to: '22:00'}}":                  "no two times",
		"approvals: {quietHours: {from: '22:00', to: '07:00', zone: Mars/Base}}": "the name of a zone",
		roles + "approvals: {escalation: {after: 15m, role: oncall}}":            "",
		roles + "approvals: {escalation: {after: 15m}}":                          "needs a time and a role",
		roles + "approvals: {escalation: {after: 15m, role: finance}}":           "is not a role",
		"serve: {publicURL: 'https://airlock.example'}":                          "",
		"serve: {publicURL: 'http://airlock.example'}":                           "can be trusted",
	} {
		_, err := loadAs(t, "airlock.yaml", text+"\n", envOf(nil))
		if got := errorText(err); want == "" && err != nil || !strings.Contains(got, want) {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
