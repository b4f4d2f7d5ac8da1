package gvisor

import (
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
)

// message builds a report as gVisor's kernel writes it.
func message(header []byte, fields ...[]byte) []byte {
	report := append([]byte{}, header...)
	for _, f := range fields {
		report = append(report, f...)
	}
	return report
}

func bytesOf(id protowire.Number, content ...byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(nil, id, protowire.BytesType), content)
}

func numberOf(id protowire.Number, n uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(nil, id, protowire.VarintType), n)
}

func TestRefused(t *testing.T) {
	header := []byte{8, 0, 23, 0, 0, 0, 0, 0}
	exit := func(errno uint64) []byte {
		return bytesOf(2, append(numberOf(1, 1<<63), numberOf(2, errno)...)...)
	}
	tests := []struct {
		name   string
		report []byte
		want   bool
	}{
		{"a call that failed with EAGAIN", message(header, bytesOf(1, 9, 9), exit(11), numberOf(3, 56)), true},
		{"a call that failed with ENOMEM", message(header, exit(12)), false},
		{"a call that worked", message(header, bytesOf(2, numberOf(1, 77)...), numberOf(3, 56)), false},
		{"a longer header of a later version", message(append([]byte{10, 0}, make([]byte, 8)...), exit(11)), true},
		{"EAGAIN as another field", message(header, numberOf(2, 11)), false},
		{"no report", nil, false},
		{"a header longer than the report", []byte{200, 0, 1}, false},
		{"a length longer than the report", message(header, []byte{2<<3 | byte(protowire.BytesType), 200, 1}), false},
		{"a field of no kind", message(header, exit(11), []byte{7}), false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := Refused(test.report); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

func FuzzRefused(f *testing.F) {
	f.Add([]byte{8, 0, 23, 0, 0, 0, 0, 0, 0x12, 2, 0x10, 11})
	f.Fuzz(func(t *testing.T, report []byte) {
		if Refused(report) && len(report) < 6 {
			t.Errorf("%v: got a refusal from fewer bytes than one needs", report)
		}
	})
}
