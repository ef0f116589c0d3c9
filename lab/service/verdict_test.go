package service_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"motorpool/internal/app"
	"motorpool/simulator"
	"motorpool/telematics"
)

// skew is the clock error that the guarantee allows.
const skew = 5 * time.Second

// load sends commands from several callers through the instances until a time has passed or a
// number was sent, and returns every response. Without a time no outage is intended: callers then
// repeat a request that a starved instance refused.
func load(instances []*instance, callers, vehicles, orders int, until time.Time) []reply {
	var mu sync.Mutex
	var replies []reply
	var group sync.WaitGroup
	actions := []telematics.Action{telematics.Lock, telematics.Unlock, telematics.AttentionSignal, telematics.OpenTopCase}
	for caller := range callers {
		group.Go(func() {
			rng := rand.New(rand.NewPCG(1, uint64(caller)))
			for n := caller; n < orders; n += callers {
				if !until.IsZero() && time.Now().After(until) {
					return
				}
				vehicle, action := rng.IntN(vehicles)+1, actions[rng.IntN(len(actions))]
				for again := true; again; {
					r := instances[n%len(instances)].controlOnce(vehicle, action)
					mu.Lock()
					replies = append(replies, r)
					mu.Unlock()
					again = until.IsZero() && r.starved()
					if r.status == 503 || !until.IsZero() {
						// Without the pause an outage would give a million refusals, and the calls
						// around it would occupy the whole machine.
						time.Sleep(repeatAfter)
					}
				}
			}
		})
	}
	group.Wait()
	return replies
}

// reconcile compares the responses to callers with what the cars did, by their own record, and with
// the final state of the commands.
func reconcile(t *testing.T, i *instance, recorder *simulator.Recorder, replies []reply) map[string]int {
	t.Helper()
	started := map[uuid.UUID]int{}
	for _, e := range recorder.Events() {
		if e.Kind != simulator.CommandStarted {
			continue
		}
		started[e.Command]++
		if e.True.After(e.Expires.Add(skew)) {
			t.Errorf("%s: command %s started %v after its expiry", e.Unit, e.Command, e.True.Sub(e.Expires))
		}
		if started[e.Command] > 1 {
			t.Errorf("%s: command %s was executed %d times", e.Unit, e.Command, started[e.Command])
		}
	}
	tally := map[string]int{}
	for _, r := range replies {
		code := r.Error.Code
		if r.Success {
			code = "executed"
		}
		tally[fmt.Sprintf("%d %s", r.status, code)]++
		var sent command
		if r.Success {
			i.must(json.Unmarshal(r.Data, &sent))
		}
		switch id := cmp.Or(sent.ID, r.Error.CommandID); {
		case r.Success && started[uuid.MustParse(id)] != 1:
			t.Errorf("command %s: the response says executed, the car executed it %d times", id, started[uuid.MustParse(id)])
		case r.Error.Outcome == "not_executed" && r.Error.Code != "command_in_progress" && id != "" && started[uuid.MustParse(id)] != 0:
			t.Errorf("command %s: the response says not_executed (%s), the car executed it", id, r.Error.Code)
		case !r.Success && r.retryAfter == "":
			t.Errorf("a failed command without retry_after: %d %s", r.status, r.Error.Code)
		case r.took > i.budget+skew:
			t.Errorf("the response %d %s came after %v", r.status, r.Error.Code, r.took)
		}
	}
	return tally
}

func TestInstances_ShareFiveHundredCommands(t *testing.T) {
	s := startStack(t, 50)
	var recorder simulator.Recorder
	instances := []*instance{s.serve(), s.serve()}
	s.drive(&recorder, healthy)
	replies := load(instances, 16, 50, 500, time.Time{})
	tally := reconcile(s.T, instances[0], &recorder, replies)
	if tally["200 executed"]+tally["409 command_in_progress"] != 500 || len(replies)-tally["503 telematics_unavailable"] != 500 {
		s.Errorf("the outcomes of 500 commands are %v", tally)
	}
	for n, i := range instances {
		sent, taken := i.metric("motorpool_commands_published_total"), i.metric("motorpool_answers_total")
		s.Logf(
			"instance %d: %d commands sent, %d answers consumed, %d of them settled a command", n+1, sent, taken,
			i.metric("motorpool_answers_settled_total"),
		)
		if sent == 0 || taken == 0 {
			s.Errorf("instance %d sent %d commands and consumed %d answers; both must share", n+1, sent, taken)
		}
	}
	s.Logf("outcomes: %v", tally)
}

// The two outages share the machine, and no other test runs with them: they load it.
func TestOutage_OfMosquittoDelaysNoCommandAndRecovers(t *testing.T) {
	t.Run("down", func(t *testing.T) {
		t.Parallel()
		outage(t, 10*time.Second, func(s *stack) { s.must(s.mosquitto.Kill()) }, func(s *stack) { s.must(s.mosquitto.Restart()) })
	})
	t.Run("frozen", func(t *testing.T) {
		t.Parallel()
		outage(t, 15*time.Second, func(s *stack) { s.must(s.mosquitto.Pause()) }, func(s *stack) { s.must(s.mosquitto.Resume()) })
	})
}

// outage makes Mosquitto unavailable for a while, under load.
func outage(t *testing.T, length time.Duration, begin, end func(*stack)) {
	s := realStack(t, 40)
	var recorder simulator.Recorder
	hasty := func(c *app.Config) { c.Budget = telematics.DefaultBudget }
	instances := []*instance{s.serve(hasty), s.serve(hasty)}
	fleet := s.drive(&recorder, healthy)
	time.AfterFunc(2*time.Second, func() { begin(s) })
	time.AfterFunc(2*time.Second+length, func() { end(s) })
	replies := load(instances, 16, 40, 1<<30, time.Now().Add(length+6*time.Second))
	ended := time.Now()

	s.eventually(60*time.Second, "all cars are connected again", func() bool { return connected(fleet) })
	s.eventually(30*time.Second, "the service is ready again", func() bool {
		for _, i := range instances {
			if status, _ := i.readiness(); status != 200 {
				return false
			}
		}
		return true
	})
	// The last expiry passes, plus the allowed clock error.
	time.Sleep(time.Until(ended.Add(telematics.DefaultBudget + skew)))
	tally := reconcile(t, instances[0], &recorder, replies)
	t.Logf("outcomes: %v", tally)
	if tally["200 executed"] == 0 || tally["503 telematics_unavailable"] == 0 {
		t.Errorf("the load must have executed and refused commands: %v", tally)
	}
	for _, i := range instances {
		i.control(1, telematics.Lock).wants(200)
	}
}
