package failover

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"

	"motorpool/telematics"
)

// pace is between two orders to one vehicle: in the seconds that the standby is behind, fewer are executed than a report repeats [TEL-3].
const pace = 500 * time.Millisecond

const callTimeout = 15 * time.Second

// callers opens a connection for each call, so that none is repeated by itself.
var callers = &http.Client{Timeout: callTimeout, Transport: &http.Transport{DisableKeepAlives: true}}

// order lets every vehicle be locked and unlocked in turns, until a time, and returns how many calls had which answer when all are answered.
func (w *world) order(ctx context.Context, until time.Time) map[string]int {
	var mu sync.Mutex
	answers := map[string]int{}
	var vehicles sync.WaitGroup
	for vehicle := 1; vehicle <= w.Vehicles; vehicle++ {
		vehicles.Go(func() {
			actions := []telematics.Action{telematics.Lock, telematics.Unlock}
			pause(ctx, pace*time.Duration(vehicle)/time.Duration(w.Vehicles)) // not all at once
			for n := 0; time.Now().Before(until) && ctx.Err() == nil; n++ {
				answer := w.call(ctx, vehicle, actions[n%2], n%w.Instances)
				mu.Lock()
				answers[answer]++
				mu.Unlock()
				pause(ctx, pace)
			}
		})
	}
	vehicles.Wait()
	return answers
}

// call orders one command, and returns the code of the answer.
func (w *world) call(ctx context.Context, vehicle int, action telematics.Action, instance int) string {
	address := fmt.Sprintf("%s/api/v1/admin/vehicles/%d/control/%s", w.instances[instance].Public, vehicle, action)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address, nil)
	if err != nil {
		return err.Error()
	}
	request.Header.Set("Authorization", "Bearer "+w.token)
	response, err := callers.Do(request)
	if err != nil {
		return "no answer"
	}
	defer response.Body.Close()
	var said struct {
		Error struct{ Code, Reason string } `json:"error"`
	}
	if err := json.NewDecoder(response.Body).Decode(&said); err != nil {
		return "no answer"
	}
	if said.Error.Code == "" {
		return fmt.Sprint(response.StatusCode)
	}
	return fmt.Sprintf("%d %s %s", response.StatusCode, said.Error.Code, said.Error.Reason)
}

// pause waits, unless the context ends first.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
