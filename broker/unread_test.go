package broker_test

import (
	"context"
	"encoding/json"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/airlock-mcp/airlock/admission"
	"github.com/airlock-mcp/airlock/broker"
)

func TestUnreadAnswersAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, func(o *options) {
			o.Limits = admission.Limits{ResultBytes: 1000, UnreadBytes: 2500,
				Concurrent: 8}
		})
		f.big(900)
		var begun sync.WaitGroup // a call that starts after an answer waits until that is read
		begun.Add(8)
		var calls atomic.Int64
		big := f.upstream.answer
		f.upstream.answer = func(ctx context.Context, name string, arguments json.RawMessage) (json.RawMessage, error) {
			if calls.Add(1) <= 8 {
				begun.Done()
				begun.Wait()
			}
			return big(ctx, name, arguments)
		}
		s := f.open()
		type got struct {
			answer broker.Answer
			read   func()
		}
		answers := make(chan got, 8)
		for i := range 8 {
			go func() {
				answer, read := s.CallUnread(t.Context(), distinct(i))
				answers <- got{answer, read}
			}()
		}
		synctest.Wait()
		// Two results fit. The others have arrived and wait.
		if len(answers) != 2 {
			t.Fatalf("answers without anything read: got %d, want 2", len(answers))
		}
		first := <-answers
		first.read()
		first.read() // only the first call of read counts
		synctest.Wait()
		if len(answers) != 2 {
			t.Fatalf("answers after one was read: got %d more, want the second and a third", len(answers))
		}
		// If the code reads nothing more, waiting results are withheld in the end.
		time.Sleep(time.Minute)
		synctest.Wait()
		withheld := 0
		for range 7 {
			next := <-answers
			if !next.answer.OK {
				checkAnswer(t, next.answer, "BudgetExceeded", "wait to be read")
				withheld++
			}
			next.read()
		}
		if withheld != 5 {
			t.Errorf("results withheld: got %d, want 5", withheld)
		}
		// Reading frees the space permanently.
		if answer := s.Call(t.Context(), distinct(9)); !answer.OK {
			t.Errorf("got %+v, want ok", answer.Error)
		}
		s.Close()
	})
}

// An answer whose result was withheld may also stay unread for long. The result itself has been
// freed by then.
func TestWithheldResultsTakeNoMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, func(o *options) {
			o.Limits = admission.Limits{ResultBytes: 64 << 10,
				UnreadBytes: 64 << 10}
		})
		var mu sync.Mutex
		var results []weak.Pointer[byte]
		var both sync.WaitGroup // a call that starts after an answer waits until that is read
		both.Add(2)
		f.upstream.answer = func(context.Context, string, json.RawMessage) (json.RawMessage, error) {
			both.Done()
			both.Wait()
			raw := json.RawMessage(`{"content":[{"type":"text","text":"` + strings.Repeat("x", 40<<10) + `"}]}`)
			mu.Lock()
			defer mu.Unlock()
			results = append(results, weak.Make(&raw[0]))
			return raw, nil
		}
		s := f.open()
		answers, reads := make([]broker.Answer, 2), make([]func(), 2)
		var calls sync.WaitGroup
		for i := range 2 {
			calls.Go(func() { answers[i], reads[i] = s.CallUnread(t.Context(), distinct(i)) })
		}
		calls.Wait()
		if answers[0].OK == answers[1].OK {
			t.Fatalf("got %v and %v, want one result and one that is withheld", answers[0].OK, answers[1].OK)
		}
		runtime.GC()
		alive := 0
		for _, result := range results {
			if result.Value() != nil {
				alive++
			}
		}
		if len(results) != 2 || alive != 1 {
			t.Errorf("got %d of %d results in memory, want 1 of 2", alive, len(results))
		}
		for i := range 2 {
			reads[i]()
		}
		runtime.KeepAlive(answers)
		s.Close()
	})
}

// Decoded arguments take many times their size, so their total is limited. Arguments above the
// limit are processed alone.
func TestArgumentsAreWorkedOnABitAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		release := make(chan struct{})
		f.upstream.answer = func(context.Context, string, json.RawMessage) (json.RawMessage, error) {
			<-release
			return json.RawMessage(`{"content":[]}`), nil
		}
		s := f.open()
		var calls sync.WaitGroup
		begin := func(bytes, index int) {
			calls.Go(func() {
				path := strings.Repeat(string(rune('a'+index)), bytes)
				if answer := s.Call(t.Context(), call("read_file", `{"path":"`+path+`"}`)); !answer.OK {
					t.Errorf("got %+v, want ok", answer.Error)
				}
			})
		}
		for i := range 6 {
			begin(1<<20, i)
		}
		synctest.Wait()
		if got := len(f.upstream.calls); got != 3 { // four with their quotes exceed 4 MiB
			t.Errorf("calls at a time: got %d, want 3", got)
		}
		release <- struct{}{}
		synctest.Wait()
		if got := len(f.upstream.calls); got != 4 {
			t.Errorf("calls after one has ended: got %d, want 4", got)
		}
		begin(8<<20, 6)
		close(release)
		calls.Wait()
		if got := len(f.upstream.calls); got != 7 {
			t.Errorf("calls in the end: got %d, want all 7", got)
		}
		s.Close()
	})
}

func TestRunsThatEndLetGoOfWaitingArguments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, nil)
		f.upstream.answer = func(ctx context.Context, _ string, _ json.RawMessage) (json.RawMessage, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		s := f.open()
		ended := make(chan broker.Answer, 2)
		for i := range 2 {
			go func() {
				ended <- s.Call(t.Context(), call(
					"read_file", `{"path":"`+strings.Repeat(string(rune('a'+i)), 5<<20)+`"}`))
			}()
		}
		synctest.Wait()
		s.Close()
		for range 2 {
			checkAnswer(t, <-ended, "Killed", "")
		}
		if got := len(f.upstream.calls); got != 1 {
			t.Errorf("calls made: got %d, want 1", got)
		}
	})
}

func TestNoCallIsMadeWhileAnswersWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, func(o *options) { o.Limits = admission.Limits{ResultBytes: 1000, UnreadBytes: 1000} })
		f.big(900)
		s := f.open()
		_, first := s.CallUnread(t.Context(), distinct(0))
		_, second := s.CallUnread(t.Context(), call("read_file", `{"path":7}`)) // refused: nothing to read
		second()
		done := make(chan broker.Answer, 2)
		for i := range 2 {
			go func() { done <- s.Call(t.Context(), distinct(i+1)) }()
		}
		synctest.Wait()
		if len(done) != 0 {
			t.Error("a call was answered, though there was no room")
		}
		first()
		for range 2 {
			if answer := <-done; !answer.OK {
				t.Errorf("got %+v, want ok", answer.Error)
			}
		}
		s.Close()
	})
}

// A call holds its slot until the answer is read, so the number of unread answers is limited
// however small they are.
func TestUnreadAnswersTakePlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t, func(o *options) { o.Limits.Concurrent = 2 })
		s := f.open()
		_, one := s.CallUnread(t.Context(), distinct(0))
		done, refused := s.Look(t.Context())
		if refused != nil {
			t.Fatal(refused)
		}
		third := make(chan broker.Answer, 1)
		go func() { third <- s.Call(t.Context(), distinct(1)) }()
		synctest.Wait()
		if len(third) != 0 {
			t.Error("a third call was made beside two unread answers")
		}
		done()
		if answer := <-third; !answer.OK {
			t.Errorf("got %+v, want ok", answer.Error)
		}
		one()
		s.Close()
	})
}
