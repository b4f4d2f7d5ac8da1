package gvisor_test

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/airlock-mcp/airlock/runner"
	"github.com/airlock-mcp/airlock/runner/gvisor"
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

func TestRead(t *testing.T) {
	header := []byte{8, 0, 23, 0, 0, 0, 0, 0}
	exit := func(errno uint64) []byte {
		return bytesOf(2, append(numberOf(1, 1<<63), numberOf(2, errno)...)...)
	}
	tests := []struct {
		name   string
		report []byte
		want   gvisor.Event
	}{
		{"a call that failed with EAGAIN", message(header, bytesOf(1, 9, 9), exit(11), numberOf(3, 56)),
			gvisor.Refused},
		{"a call that failed with ENOMEM", message(header, exit(12)), gvisor.Nothing},
		{"a call that worked", message(header, bytesOf(2, numberOf(1, 77)...), numberOf(3, 56)), gvisor.Began},
		{"a call that worked, by its number", message(
			[]byte{8, 0, 6, 0, 0, 0, 0, 0}, bytesOf(2, numberOf(1, 77)...), numberOf(3, 435)), gvisor.Began},
		{"a call in the child", message(header, bytesOf(2, numberOf(1, 0)...)), gvisor.Nothing},
		{"the end of a thread", message([]byte{8, 0, 5, 0, 0, 0, 0, 0}, numberOf(2, 256)), gvisor.Ended},
		{"a longer header of a later version", message(append([]byte{10, 0}, make([]byte, 8)...), exit(11)),
			gvisor.Refused},
		{"EAGAIN as another field", message(header, numberOf(2, 11)), gvisor.Nothing},
		{"no report", nil, gvisor.Nothing},
		{"a header longer than the report", []byte{200, 0, 1, 0}, gvisor.Nothing},
		{"a length longer than the report", message(header, []byte{2<<3 | byte(protowire.BytesType), 200, 1}),
			gvisor.Nothing},
		{"a field of no kind", message(header, exit(11), []byte{7}), gvisor.Nothing},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := gvisor.Read(test.report); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

// recorder is a Watcher that records the events.
type recorder struct {
	tasks   int
	refused bool
	ended   []unix.WaitStatus
}

func (w *recorder) Refused()                     { w.refused = true }
func (w *recorder) Counted(tasks int)            { w.tasks = tasks }
func (w *recorder) GuestEnded(s unix.WaitStatus) { w.ended = append(w.ended, s) }

func TestReportsOfTheGuestsEnd(t *testing.T) {
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	kernel := os.NewFile(uintptr(ends[0]), "kernel")
	defer kernel.Close()
	host := os.NewFile(uintptr(ends[1]), "host")
	defer host.Close()
	watcher := &recorder{}
	reports, err := gvisor.NewReports(host, watcher)
	if err != nil {
		t.Fatal(err)
	}
	header := []byte{8, 0, 5, 0, 0, 0, 0, 0}
	for _, report := range [][]byte{
		message(header, bytesOf(1, numberOf(2, 7)...), numberOf(2, 3<<8)), // another thread
		message(header, numberOf(2, 3<<8)),                                // without a thread
		message(header, bytesOf(1, numberOf(2, 1)...), numberOf(2, 128<<8)),
		message(header, bytesOf(1, numberOf(2, 1)...), numberOf(2, 9)),
		message(header, bytesOf(1, numberOf(2, 1)...)),
		message(header, bytesOf(1, numberOf(2, 1)...), []byte{7}),
	} {
		if _, err := kernel.Write(report); err != nil {
			t.Fatal(err)
		}
	}
	reports.Flush()
	want := []runner.Exit{{Code: 128}, {Code: 137, Signal: 9}, {}}
	if len(watcher.ended) != len(want) || watcher.tasks != -6 || watcher.refused {
		t.Fatalf("got %+v", watcher)
	}
	for i, status := range watcher.ended {
		if got := gvisor.ExitOf(status); got != want[i] {
			t.Errorf("%#x: got %+v, want %+v", status, got, want[i])
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte{8, 0, 23, 0, 0, 0, 0, 0, 0x12, 2, 0x10, 11})
	f.Fuzz(func(t *testing.T, report []byte) {
		if got := gvisor.Read(report); got != gvisor.Nothing && len(report) < 4 {
			t.Errorf("%v: got %v from fewer bytes than a header has", report, got)
		}
	})
}
