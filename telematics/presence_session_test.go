package telematics

import (
	"reflect"
	"testing"
	"time"
)

// [PRE-1]
func TestAUnitWhoseClockWentBackBetweenTwoConnectionsBeginsANewSession(t *testing.T) {
	c, _ := Contact{}.Apply(said(Online, "before", now), now, false)
	c, _ = c.Apply(said(Offline, "before", time.Time{}), now.Add(second), false)
	began := now.Add(10 * second)
	online := said(Online, "after", now.Add(-minute)) // within the five minutes of [PRE-1]
	online.Actions, online.Firmware = []Action{Lock}, "4.2.2"
	c, counted := c.Apply(online, began, false)
	if !counted || c.Session != "after" || !reflect.DeepEqual(c.Actions, []Action{Lock}) || c.Firmware != "4.2.2" {
		t.Fatalf("the session did not begin: counted %t, %+v", counted, c)
	}
	c, counted = c.Apply(said(Standby, "after", now.Add(-minute+second)), began.Add(second), false)
	if !counted || c.Status != Standby {
		t.Errorf("its standby did not count: %+v", c)
	}
	dead := began.Add(2 * second)
	c, counted = c.Apply(said(Offline, "after", time.Time{}), dead, false)
	if !counted || c.At(dead) != Offline || !c.Away(dead.Add(AwayAfter+second)) {
		t.Errorf("its last will counted %t, the unit reads %s, away %t", counted, c.At(dead), c.Away(dead.Add(AwayAfter+second)))
	}
}

// [PRE-1] An instance that was frozen hands in what others have handed in long before.
func TestPresenceOfAFormerSessionNeverCounts(t *testing.T) {
	sessions := []string{"one", "two", "three", "four", "five"}
	c := Contact{}
	for i, session := range sessions {
		c, _ = c.Apply(said(Online, session, now.Add(-time.Duration(i)*second)), now, false) // by a clock that goes back
	}
	for _, session := range sessions[:len(sessions)-1] {
		for _, status := range []PresenceStatus{Online, Standby, Offline} {
			for _, retained := range []bool{false, true} {
				after, counted := c.Apply(said(status, session, now.Add(second)), now.Add(minute), retained)
				if counted || !reflect.DeepEqual(after, c) {
					t.Errorf("%s of %s, retained %t, counted: %+v", status, session, retained, after)
				}
			}
		}
	}
	if c.Session != "five" || len(c.Former) != formerSessions {
		t.Errorf("the contact is %+v", c)
	}
}

// [PRE-1] What the MQTT broker retains proves no order.
func TestARetainedOnlineOfAnUnknownSessionMustNotBeOlderThanTheCurrentOne(t *testing.T) {
	c, _ := Contact{}.Apply(said(Online, "a", now), now, false)
	if after, counted := c.Apply(said(Online, "b", now.Add(-second)), now.Add(second), true); counted {
		t.Errorf("it counted: %+v", after)
	}
	if after, counted := c.Apply(said(Standby, "b", now.Add(-second)), now.Add(second), false); counted {
		t.Errorf("an older standby of a session that never began counted: %+v", after)
	}
}

func TestSessionsOfOneContactDoNotChangeThoseOfAnother(t *testing.T) {
	c, _ := Contact{}.Apply(said(Online, "a", now), now, false)
	c, _ = c.Apply(said(Online, "b", now), now, false)
	one, _ := c.Apply(said(Online, "c", now), now, false)
	other, _ := c.Apply(said(Online, "d", now), now, false)
	if !reflect.DeepEqual(one.Former, []string{"b", "a"}) || !reflect.DeepEqual(other.Former, []string{"b", "a"}) {
		t.Errorf("former sessions %v and %v", one.Former, other.Former)
	}
}
