package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"motorpool/internal/world"
	"motorpool/lab/chaos/fault"
	"motorpool/lab/chaos/network"
	"motorpool/simulator"
)

// injectors are the functions that inject each kind of fault. They return when the fault is over.
var injectors = map[string]func(*round, context.Context, fault.Fault) error{
	"instance killed":                    (*round).kill,
	"instance frozen":                    (*round).freeze,
	"instance stopped":                   (*round).stop,
	fault.ClockAhead:                     (*round).setClockAhead,
	"mosquitto killed":                   (*round).kill,
	"mosquitto frozen":                   (*round).freeze,
	"redis killed":                       (*round).kill,
	"redis frozen":                       (*round).freeze,
	"redis emptied":                      (*round).emptyRedis,
	"postgres killed":                    (*round).kill,
	"postgres frozen":                    (*round).freeze,
	fault.FullDisk:                       (*round).fillDisk,
	"postgres read-only":                 (*round).forbidWrites,
	"vehicles locked":                    (*round).lockVehicles,
	"table locked":                       (*round).lockTable,
	fault.RedisEvicting:                  (*round).evict,
	"instance log blocked":               (*round).blockLog,
	"subscription deaf":                  (*round).deafen,
	"foreign signing key":                (*round).signWithForeignKey,
	fault.LeapTo2100:                     (*round).leap,
	fault.MonthsEnd:                      (*round).endMonth,
	fault.LeapADay:                       (*round).leap,
	"instances killed and redis emptied": (*round).loseUnstored,
	"presence stored late":               (*round).delayPresence,
	"installation copied":                (*round).copyInstallation,
	"standby gone":                       struckByWorld,
	"commit waits cancelled":             struckByWorld,
	"two primaries":                      struckByWorld,
	fault.PostgresSync:                   struckByWorld,
	fault.RedisSentinel:                  struckByWorld,
	fault.RedisCluster:                   struckByWorld,
	"answers invented":                   (*round).inventAnswers,
	"none":                               func(_ *round, ctx context.Context, f fault.Fault) error { world.Pause(ctx, f.For); return nil },
	"commands halted":                    (*round).haltCommands,
	"signing key rotated":                (*round).rotateKey,
	"network cut":                        (*round).cutLine,
	"network silent":                     toxicLine(func(int64) network.Toxic { return network.Silence() }),
	"network delayed":                    toxicLine(network.Delay),
	"network slow":                       toxicLine(network.Slowness),
	"network reset":                      toxicLine(network.Reset),
	"network torn":                       toxicLine(network.Tear),
	"car clocks wrong":                   (*round).skewClocks,
	fault.Restarted:                      (*round).restartCars,
	"cars disconnected":                  (*round).disconnectCars,
	"commands lost":                      breakCars(func(f *simulator.Faults, _ int64) { f.Drop.Chance = 0.5 }),
	"commands damaged":                   breakCars(func(f *simulator.Faults, _ int64) { f.Damage.Chance = 0.7 }),
	"answers lost":                       breakCars(func(f *simulator.Faults, _ int64) { f.DropAnswer.Chance = 0.6 }),
	"answers duplicated":                 breakCars(func(f *simulator.Faults, _ int64) { f.Duplicate.Chance = 0.8 }),
	"answers reordered":                  breakCars(func(f *simulator.Faults, _ int64) { f.Reorder.Chance = 0.8 }),
	fault.RadioLate:                      breakCars(func(f *simulator.Faults, ms int64) { f.Delay = time.Duration(ms) * time.Millisecond }),
	"commands replayed":                  (*round).replay,
	"commands forged":                    (*round).forge,
}

// struckByWorld injects the fault for which the round has a separate world.
func struckByWorld(r *round, ctx context.Context, f fault.Fault) error { return r.strike(ctx, f) }

// injection is a fault that happened.
type injection struct {
	fault.Fault
	From, To time.Time // from before it began until after it was over
	Err      error     // errUnsupported, or nil
}

// errUnsupported means that this machine cannot have that fault.
var errUnsupported = errors.New("not available here")

// injectAll injects every fault of the round at its time, and returns when all are over.
func (r *round) injectAll(ctx context.Context) error {
	progress(fmt.Sprintf("%v of load, %d faults", r.Duration, len(r.faults)))
	// A fault that takes longer than planned delays the next one of its target.
	targets := map[string]*sync.Mutex{}
	for _, f := range r.faults {
		targets[f.Target] = &sync.Mutex{}
	}
	begin := time.Now()
	var all sync.WaitGroup
	for _, f := range r.faults {
		world.Pause(ctx, time.Until(begin.Add(f.At)))
		if ctx.Err() != nil {
			break
		}
		all.Go(func() {
			targets[f.Target].Lock()
			defer targets[f.Target].Unlock()
			i := injection{Fault: f, From: time.Now()}
			r.Log.Info("fault injected", "kind", f.Kind.Name, "target", f.Target, "for", f.For, "amount", f.Amount, "cars", len(f.Cars))
			i.Err = injectors[f.Kind.Name](r, ctx, f)
			i.To = time.Now()
			if r.mustCome(i.Err) && !errors.Is(i.Err, errUnsupported) {
				r.Fail(fmt.Errorf("fault %q of %s: %w", f.Kind.Name, f.Target, i.Err))
			}
			r.injections.Add(i)
		})
	}
	all.Wait()
	return nil
}

// aftermath is how long after a fault a call still counts as disturbed by it.
const aftermath = time.Second

// withoutFaults returns a test for intervals without faults.
func withoutFaults(injections []injection) func(from, to time.Time) bool {
	return func(from, to time.Time) bool {
		for _, i := range injections {
			if i.Err == nil && from.Before(i.To.Add(aftermath)) && to.After(i.From) {
				return false
			}
		}
		return true
	}
}
