package main

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestUptime_ServiceIsUpWhileOneInstanceReachesPostgres(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := newUptime(2)
		begin := time.Now()
		at := func(seconds int) { time.Sleep(time.Until(begin.Add(time.Duration(seconds) * time.Second))) }
		at(1)
		first := u.down(0)
		at(2)
		second := u.down(1)
		at(3)
		all := u.allDown()
		first()
		at(5)
		all()
		at(6)
		second()

		up := u.up()
		if len(up) != 2 || up[0].To.Sub(begin) != 2*time.Second || up[1].From.Sub(begin) != 5*time.Second || !up[1].To.IsZero() {
			t.Errorf("the service was up during %v", up)
		}
		if reach := u.reach(); len(reach[0]) != 2 || reach[0][0].To.Sub(begin) != time.Second || len(reach[1]) != 2 {
			t.Errorf("the instances reached Postgres during %v", reach)
		}
	})
}

func TestUptime_BothOfTwoFaultsOfAnInstanceMustBeOver(t *testing.T) {
	u := newUptime(1)
	killed, cut := u.down(0), u.down(0)
	killed()
	if up := u.up(); len(up) != 1 || up[0].To.IsZero() {
		t.Errorf("the instance counts as up during a second fault: %v", up)
	}
	cut()
	if up := u.up(); len(up) != 2 {
		t.Errorf("the instance counts as down after both faults: %v", up)
	}
}

func TestUptime_StallOfTheMachineIsNoUptime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := newUptime(1)
		time.Sleep(time.Second)
		from := time.Now()
		time.Sleep(3 * time.Second)
		u.stall(from, time.Now())
		if up := u.up(); len(up) != 2 || !up[0].To.Equal(from) || !up[1].From.Equal(time.Now()) {
			t.Errorf("the service was up during %v, want a gap at the stall", up)
		}
	})
}
