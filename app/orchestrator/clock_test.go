package orchestrator

import (
	"testing"
	"testing/synctest"
	"time"
)

func idle() time.Duration { return 0 }

func TestClockPausesWhilePaused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		started := time.Now()
		c := startClock(10*time.Second, idle)
		defer c.stop()
		time.Sleep(4 * time.Second)
		c.pause(true)
		time.Sleep(time.Hour)
		c.pause(true) // pausing twice counts once
		time.Sleep(time.Hour)
		c.pause(false)
		<-c.expired
		if got, want := time.Since(started), 2*time.Hour+10*time.Second; got != want {
			t.Errorf("expired after %v, want %v", got, want)
		}
	})
}

func TestWorkCountsWhilePaused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		started := time.Now()
		// The code asks a person and goes on working in another thread.
		c := startClock(10*time.Second, func() time.Duration { return time.Since(started) })
		defer c.stop()
		time.Sleep(time.Second)
		c.pause(true)
		<-c.expired
		if got := time.Since(started); got < 10*time.Second || got > 10*time.Second+watchInterval {
			t.Errorf("expired after %v, want 10s and at most %v more", got, watchInterval)
		}
	})
}

func TestStoppedClockNeverExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := startClock(time.Second, idle)
		c.pause(true)
		c.stop()
		c.pause(false)
		time.Sleep(time.Hour)
		select {
		case <-c.expired:
			t.Error("a stopped clock expired")
		default:
		}
	})
}
