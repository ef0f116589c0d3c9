// Package installation keeps an installation alone at its MQTT brokers and at its Redis. Two
// that share one, such as a copy of the database for tests, would take each other's answers and
// overwrite each other's reported states.
//
// Each instance writes a beat into the database each second, and announces it at each place: its
// claim. An instance that hears the claim of another looks for that beat in its own database.
// Where it is missing, the other belongs to another database, even to a copy of this one.
//
// Who has a place keeps it. An installation that finds a claim of another one is refused there,
// until that one has been silent for a while. Where both believe to have it, since the
// connection of one was lost meanwhile, the one that has had it for longer keeps it.
package installation

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"time"

	"motorpool/guard"
	"motorpool/telematics"
)

// Place is a server that an installation must have for itself. It is closed until Admit is called.
type Place interface {
	// Exchange announces a claim, or, where the instance only asks, shows it to those that have
	// the place. It returns the claims of instances that arrived since the last call, its own
	// among them; asked: those that only ask.
	Exchange(ctx context.Context, claim string, asks bool) (heard, asked []string, err error)
	// Admit opens the place to the service, or closes it with a reason.
	Admit(why error)
	// Patience is how long after the first question the answers of others have arrived.
	Patience() time.Duration
}

// Beats are the numbers of the latest beats of the instances in this database, by id.
type Beats map[string]int64

// Config configures a Keeper.
type Config struct {
	Installation func(context.Context) (string, error) // returns the id of the installation
	Instance     string
	// Beat writes a beat above least, and returns those of all instances. ErrFormer: this database
	// is not that of the installation any more, so the places are given up.
	Beat   func(ctx context.Context, least int64) (Beats, error)
	Places map[string]Place // by name, for the log
	Logger *slog.Logger
	Guard  *guard.Guard // recovers panics. Nil: they are only logged
}

// Keeper keeps the places of an installation. It is safe for concurrent use.
type Keeper struct {
	Config
	id     string // of the installation
	places []*place

	mu      sync.Mutex
	beat    int64     // the latest one
	written time.Time // when that was begun; the zero time: never
	trying  time.Time // when the present attempt began; the zero time: there is none
	failure error     // of the latest attempt
	others  map[string]bool
}

// New assembles a keeper, and closes the places. It does no I/O before Run.
func New(c Config) *Keeper {
	k := &Keeper{Config: c, others: map[string]bool{}}
	for name, p := range c.Places {
		p.Admit(errUndecided)
		k.others[name] = false
		k.places = append(
			k.places,
			&place{Place: p, name: name, log: c.Logger, instance: short(c.Instance, 12), tenure: none, kin: map[string]int64{}},
		)
	}
	return k
}

// ErrFormer means that the database of an instance is a former primary: other instances go on with
// the one that was promoted.
var ErrFormer = errors.New("the database is a former primary")

var errUndecided = errors.New("it is not known yet whether another installation uses it")

// Run writes beats and keeps the places, until the context ends. It returns nil.
func (k *Keeper) Run(ctx context.Context) error {
	for begin := time.Now(); ctx.Err() == nil; {
		pause := every
		if !k.step(ctx, time.Since(begin) < connectsWithin) {
			pause = undecidedEvery
		}
		guard.Pause(ctx, pause)
	}
	return nil
}

// step reports whether each place is decided, or cannot be decided soon: a place that fails is
// only connecting while the instance starts.
func (k *Keeper) step(ctx context.Context, starts bool) (decided bool) {
	if k.id == "" {
		if err := k.identify(ctx); err != nil {
			return true
		}
	}
	beat := k.latest()
	k.each(ctx, func(ctx context.Context, p *place) { p.exchange(ctx, k.id, beat) })
	// After that, so that this database has the beat of each claim that was heard.
	beats, err := k.write(ctx)
	if errors.Is(err, ErrFormer) {
		k.each(ctx, func(ctx context.Context, p *place) { p.withdraw(ctx, err) })
	}
	decided = true
	for _, p := range k.places {
		if beats != nil {
			p.judge(time.Now(), beats)
		}
		decided = decided && (p.holds || p.refused != nil || p.failure != nil && !starts || beats == nil)
		k.mu.Lock()
		k.others[p.name] = p.sees(time.Now())
		k.mu.Unlock()
	}
	return decided
}

// each calls do for all places concurrently: one that hangs delays the beat by exchangeWithin.
func (k *Keeper) each(ctx context.Context, do func(context.Context, *place)) {
	ctx, cancel := context.WithTimeout(ctx, exchangeWithin)
	defer cancel()
	var doing sync.WaitGroup
	for _, p := range k.places {
		doing.Go(func() { _ = k.Guard.Do("look after "+p.name, func() { do(ctx, p) }) })
	}
	doing.Wait()
}

func (k *Keeper) identify(ctx context.Context) (err error) {
	k.id, err = k.Installation(ctx)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.failure = err
	return err
}

// write writes a beat, and returns all.
func (k *Keeper) write(ctx context.Context) (Beats, error) {
	k.mu.Lock()
	least, beat := k.beat, k.Beat
	began := time.Now()
	k.trying = began
	k.mu.Unlock()
	beats, err := beat(ctx, least)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.trying, k.failure = time.Time{}, err
	if err != nil {
		return nil, err
	}
	k.beat, k.written = beats[k.Instance], began
	all := Beats{}
	for id, beat := range beats {
		all[short(id, 12)] = beat
	}
	return all, nil
}

func (k *Keeper) latest() int64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.beat
}

// Writes returns nil where Postgres took a beat within writtenWithin. A single failure of a write
// does not count; the first success ends the error.
func (k *Keeper) Writes() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case time.Since(k.written) < writtenWithin:
		return nil
	case !k.trying.IsZero() && time.Since(k.trying) > hangs:
		return fmt.Errorf(
			"a write to postgres has been waiting for %v: a lock, or a synchronous standby that does not answer",
			telematics.Words(time.Since(k.trying)),
		)
	case k.failure != nil:
		return k.failure
	}
	return errors.New("postgres has taken no write yet")
}

// Others returns the places, each with whether another installation was heard there lately.
func (k *Keeper) Others() map[string]bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return maps.Clone(k.others)
}
