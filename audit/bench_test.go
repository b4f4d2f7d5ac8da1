package audit_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// Callers that each record a call before it and after it, as fast as they can. Reported are the medians of how
// long both records of a call take, and of the processor time of the process for each call.
func BenchmarkCalls(b *testing.B) {
	for _, callers := range []int{1, 4, 16, 64} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			l := open(b, b.TempDir(), nil)
			intents, outcomes := make([][]time.Duration, callers), make([][]time.Duration, callers)
			var left atomic.Int64
			left.Store(int64(b.N))
			var all sync.WaitGroup
			before := processorTime(b)
			b.ResetTimer()
			for n := range callers {
				all.Go(func() {
					for left.Add(-1) >= 0 {
						began := time.Now()
						err := l.Append(b.Context(), intent("call_1"))
						durable := time.Now()
						if err = errors.Join(err, l.Note(b.Context(), outcome("call_1"))); err != nil {
							b.Error(err)
							return
						}
						intents[n], outcomes[n] = append(intents[n], durable.Sub(began)),
							append(outcomes[n], time.Since(durable))
					}
				})
			}
			all.Wait()
			b.StopTimer()
			b.ReportMetric(float64((processorTime(b)-before).Microseconds())/float64(b.N), "cpu-µs/call")
			b.ReportMetric(median(intents), "intent-µs")
			b.ReportMetric(median(outcomes), "outcome-µs")
		})
	}
}

// median is the median of all durations, in microseconds.
func median(each [][]time.Duration) float64 {
	all := slices.Concat(each...)
	slices.Sort(all)
	return float64(all[len(all)/2].Nanoseconds()) / 1000
}

// processorTime is what this process has used so far.
func processorTime(b *testing.B) time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
