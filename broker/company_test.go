package broker

import (
	"testing"
	"testing/synctest"
	"time"

	"motorpool/telematics"
)

func TestCompany_SlowCarsShareASettlement(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &Broker{first: make(chan *queuedAnswer, 2*companySize)}
		wantQueued := func(when string, want int) {
			t.Helper()
			if synctest.Wait(); len(b.first) != want {
				t.Errorf("%s: %d answers are queued, want %d", when, len(b.first), want)
			}
			for range len(b.first) {
				<-b.first
			}
		}
		b.hold(&queuedAnswer{})
		time.Sleep(companyWait - time.Millisecond)
		b.hold(&queuedAnswer{})
		wantQueued("before the time of the first", 0)
		time.Sleep(time.Millisecond)
		wantQueued("at the time of the first", 2)
		time.Sleep(companyWait)
		wantQueued("later", 0)
		for range companySize + 1 {
			b.hold(&queuedAnswer{})
		}
		wantQueued("with one more than a company", companySize)
		time.Sleep(companyWait)
		wantQueued("at the time of that one", 1)
		b.hold(&queuedAnswer{})
		b.releaseHeld()
		wantQueued("at the end", 1)
		time.Sleep(companyWait)
		wantQueued("after the end", 0)
	})
}

func TestCompany_IsOfFinalAnswersLongBeforeTheDeadline(t *testing.T) {
	requested := time.Now()
	c := &telematics.Command{Requested: requested, Deadline: requested.Add(10 * time.Second)}
	for _, test := range []struct {
		after  time.Duration
		answer telematics.Answer
		want   bool
	}{
		{companyAge, telematics.Answer{State: telematics.Succeeded}, true},
		{companyAge, telematics.Answer{State: telematics.Failed}, true},
		{companyAge, telematics.Answer{State: telematics.Received}, false},
		{companyAge, telematics.Answer{State: telematics.Rejected, Reason: telematics.WrongAudience}, false},
		{companyAge - time.Millisecond, telematics.Answer{State: telematics.Succeeded}, false},
		{9 * time.Second, telematics.Answer{State: telematics.Succeeded}, true},
		{9*time.Second + time.Millisecond, telematics.Answer{State: telematics.Succeeded}, false},
		{11 * time.Second, telematics.Answer{State: telematics.Succeeded}, false},
	} {
		a := &queuedAnswer{unitAnswer: unitAnswer{answer: test.answer, at: requested.Add(test.after)}}
		if got := mayHold(c, a); got != test.want {
			t.Errorf("%s after %v: may be held %t, want %t", test.answer.State, test.after, got, test.want)
		}
	}
}
