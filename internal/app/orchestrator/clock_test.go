package orchestrator

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestClockStandsStillWhileHalted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		started := time.Now()
		c := startClock(10 * time.Second)
		defer c.stop()
		time.Sleep(4 * time.Second)
		c.halt(true)
		time.Sleep(time.Hour)
		c.halt(true) // halting twice counts once
		time.Sleep(time.Hour)
		c.halt(false)
		<-c.expired
		if got, want := time.Since(started), 2*time.Hour+10*time.Second; got != want {
			t.Errorf("expired after %v, want %v", got, want)
		}
	})
}

func TestStoppedClockNeverExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := startClock(time.Second)
		c.halt(true)
		c.stop()
		c.halt(false)
		time.Sleep(time.Hour)
		select {
		case <-c.expired:
			t.Error("a stopped clock expired")
		default:
		}
	})
}
