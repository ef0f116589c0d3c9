package installation

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"motorpool/internal/assert"
	"motorpool/internal/require"
)

// hub is a place where instances hear each other, as at an MQTT broker.
type hub struct {
	mu      sync.Mutex
	members []*member
}

// member is the place of one instance at a hub.
type member struct {
	*hub
	heard, asked []string
	mine         string // the latest claim; empty: it only asks
	admitted     error
	cut          bool          // it is not connected
	closing      time.Duration // how long it is not connected where it is closed
}

func (h *hub) join() *member {
	m := &member{hub: h}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.members = append(h.members, m)
	return m
}

func (m *member) Exchange(_ context.Context, claim string, asks bool) (heard, asked []string, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.cut {
		return nil, nil, errors.New("not connected")
	}
	m.mine = claim
	if asks {
		m.mine = ""
	}
	for _, other := range m.members {
		switch {
		case other.cut:
		case asks:
			other.asked = append(other.asked, claim)
			if other.mine != "" {
				m.heard = append(m.heard, other.mine)
			}
		default:
			other.heard = append(other.heard, claim)
		}
	}
	heard, asked, m.heard, m.asked = m.heard, m.asked, nil, nil
	return heard, asked, nil
}

func (m *member) Admit(why error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.admitted == nil && why != nil && m.closing > 0 {
		m.cut = true
		time.AfterFunc(m.closing, func() { m.setCut(false) })
	}
	m.admitted = why
}

func (m *member) open() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.admitted == nil
}

func (m *member) setCut(cut bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.cut = cut
}

func (m *member) Patience() time.Duration { return 300 * time.Millisecond }

// database is the beats of an installation.
type database struct {
	mu    sync.Mutex
	id    string
	beats Beats
	down  error
}

func newDatabase(id string) *database { return &database{id: id, beats: Beats{}} }

// copied returns a copy of the database, as of now.
func (d *database) copied() *database {
	d.mu.Lock()
	defer d.mu.Unlock()
	c := newDatabase(d.id)
	for id, n := range d.beats {
		c.beats[id] = n
	}
	return c
}

func (d *database) set(change func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	change()
}

// start runs an instance until stop is called.
func (d *database) start(t *testing.T, name string, at *hub) (m *member, k *Keeper, stop func()) {
	t.Helper()
	m = at.join()
	k = New(Config{
		Installation: func(context.Context) (string, error) { return d.id, nil }, Instance: name,
		Beat: func(_ context.Context, least int64) (Beats, error) {
			d.mu.Lock()
			defer d.mu.Unlock()
			if d.down != nil {
				return nil, d.down
			}
			d.beats[name] = max(d.beats[name], least) + 1
			all := Beats{}
			for id, n := range d.beats {
				all[id] = n
			}
			return all, nil
		},
		Places: map[string]Place{"mqtt": m}, Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
	})
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { _ = k.Run(ctx) })
	stop = sync.OnceFunc(func() { cancel(); running.Wait(); m.setCut(true) })
	t.Cleanup(stop)
	return m, k, stop
}

func want(t *testing.T, when string, states map[*member]bool) {
	t.Helper()
	synctest.Wait()
	for m, open := range states {
		if m.open() != open {
			t.Errorf("%s: admitted is %v, want %v (%v)", when, m.open(), open, m.admitted)
		}
	}
}

func TestKeeper_InstancesOfOneInstallationAreAdmittedSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		at, db := &hub{}, newDatabase("11111111aaaa")
		a, k, stopA := db.start(t, "aaaaaaaaaaaa", at)
		b, _, _ := db.start(t, "bbbbbbbbbbbb", at) // in the same moment
		time.Sleep(time.Second)
		want(t, "two start together", map[*member]bool{a: true, b: true})
		c, _, _ := db.start(t, "cccccccccccc", at)
		time.Sleep(500 * time.Millisecond)
		want(t, "a third one", map[*member]bool{a: true, b: true, c: true})
		time.Sleep(time.Minute)
		want(t, "a minute later", map[*member]bool{a: true, b: true, c: true})
		if k.Others()["mqtt"] {
			t.Error("an instance of the same database counts as another installation")
		}
		stopA()
		a, _, _ = db.start(t, "dddddddddddd", at)
		time.Sleep(time.Second)
		want(t, "one is restarted", map[*member]bool{a: true, b: true, c: true})
	})
}

// The connection to an MQTT broker is made while the first questions are asked.
func TestKeeper_PlaceThatIsConnectedAfterTheStartIsAdmittedSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, _, _ := newDatabase("11111111aaaa").start(t, "aaaaaaaaaaaa", &hub{})
		m.setCut(true)
		synctest.Wait()
		time.AfterFunc(50*time.Millisecond, func() { m.setCut(false) })
		time.Sleep(600 * time.Millisecond)
		want(t, "connected after 50 ms", map[*member]bool{m: true})
	})
}

// An instance that starts in an outage writes no beat ten times a second for long.
func TestKeeper_PlaceThatStaysAwayIsAskedOnceASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newDatabase("11111111aaaa")
		m, k, _ := db.start(t, "aaaaaaaaaaaa", &hub{})
		m.setCut(true)
		time.Sleep(connectsWithin + time.Second)
		before := k.latest()
		time.Sleep(10*time.Second + undecidedEvery)
		if n := k.latest() - before; n < 9 || n > 11 {
			t.Errorf("%d beats in 10 s, want one a second", n)
		}
	})
}

func TestKeeper_AnotherInstallationOrACopyIsRefused(t *testing.T) {
	for name, other := range map[string]func(*database) *database{
		"another id": func(*database) *database { return newDatabase("22222222bbbb") },
		"a copy":     (*database).copied,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				at, db := &hub{}, newDatabase("11111111aaaa")
				a, k, stopA := db.start(t, "aaaaaaaaaaaa", at)
				time.Sleep(time.Minute)
				second := other(db)
				b, kb, _ := second.start(t, "bbbbbbbbbbbb", at)
				c, _, _ := second.start(t, "cccccccccccc", at)
				time.Sleep(6 * time.Second) // a copy that is a moment old has to see one more beat
				for range 60 {
					time.Sleep(time.Second)
					want(t, "the second one", map[*member]bool{a: true, b: false, c: false})
				}
				if !k.Others()["mqtt"] || !kb.Others()["mqtt"] {
					t.Error("one does not tell of the other")
				}
				// An upgrade with all instances stopped does not give the place away.
				stopA()
				time.Sleep(2 * time.Minute)
				want(t, "the first one is stopped for a moment", map[*member]bool{b: false, c: false})
				a, _, stopA = db.start(t, "dddddddddddd", at)
				time.Sleep(5 * time.Second)
				want(t, "and starts again", map[*member]bool{a: true, b: false, c: false})
				stopA()
				time.Sleep(silence + 5*time.Second)
				want(t, "the first one is gone", map[*member]bool{b: true, c: true})
			})
		})
	}
}

// Both believed to have the place, since the connection of one was lost.
func TestKeeper_TheOneThatHasHadThePlaceForLongerKeepsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		at, db := &hub{}, newDatabase("11111111aaaa")
		a, _, _ := db.start(t, "aaaaaaaaaaaa", at)
		time.Sleep(time.Minute)
		a.setCut(true)
		b, _, _ := newDatabase("22222222bbbb").start(t, "bbbbbbbbbbbb", at)
		time.Sleep(time.Minute)
		want(t, "the first one is cut off", map[*member]bool{b: true})
		a.setCut(false)
		time.Sleep(2 * provenBy)
		want(t, "it is back", map[*member]bool{a: true, b: false})
	})
}

// A failover or a restore loses beats under running instances, and Postgres is unavailable before.
func TestKeeper_LostCommitsAndOutagesRefuseNoInstance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		at, db := &hub{}, newDatabase("11111111aaaa")
		a, k, _ := db.start(t, "aaaaaaaaaaaa", at)
		b, _, stopB := db.start(t, "bbbbbbbbbbbb", at)
		time.Sleep(time.Minute)
		// It does not know yet how long its installation has had the place.
		c, _, stopC := db.start(t, "dddddddddddd", at)
		time.Sleep(lead * time.Second)
		all := map[*member]bool{a: true, b: true, c: true}
		db.set(func() { db.down = errors.New("postgres is unavailable") })
		for range 60 {
			time.Sleep(time.Second)
			want(t, "without Postgres", all)
		}
		if k.Writes() == nil {
			t.Error("no error of a database that takes no writes")
		}
		db.set(func() { db.down, db.beats = nil, Beats{"aaaaaaaaaaaa": 3} })
		for range 20 {
			time.Sleep(time.Second)
			want(t, "after a failover that lost commits", all)
		}
		assert.NoError(t, k.Writes(), "the database takes writes")
		// One is restarted in the moment in which the database loses commits.
		stopB()
		stopC()
		db.set(func() { db.beats = Beats{} })
		b, _, _ = db.start(t, "cccccccccccc", at)
		time.Sleep(3 * time.Second)
		want(t, "restarted meanwhile", map[*member]bool{a: true, b: true})
	})
}

// A standby is promoted while an instance reaches the former primary alone. Once that instance
// knows, those at the promoted one come in without a long silence.
func TestKeeper_InstanceAtAFormerPrimaryGivesThePlaceUp(t *testing.T) {
	for name, lose := range map[string]func(a *member){
		"connected":                       func(*member) {},
		"closing ends the connection":     func(a *member) { a.closing = 8 * time.Second },
		"the connection is lost, as well": func(a *member) { a.setCut(true); time.AfterFunc(20*time.Second, func() { a.setCut(false) }) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				at, former := &hub{}, newDatabase("11111111aaaa")
				a, _, _ := former.start(t, "aaaaaaaaaaaa", at)
				time.Sleep(time.Minute)
				promoted := former.copied()
				time.Sleep(5 * time.Second)
				b, _, _ := promoted.start(t, "bbbbbbbbbbbb", at)
				time.Sleep(5 * time.Second)
				want(t, "both primaries take writes", map[*member]bool{a: true, b: false})
				lose(a)
				former.set(func() { former.down = ErrFormer })
				time.Sleep(30 * time.Second)
				want(t, "the former one is known", map[*member]bool{a: false, b: true})
				time.Sleep(time.Minute)
				want(t, "a minute later", map[*member]bool{a: false, b: true})
			})
		})
	}
}

func TestKeeper_NotesAWriteThatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		db := newDatabase("11111111aaaa")
		_, k, _ := db.start(t, "aaaaaaaaaaaa", &hub{})
		time.Sleep(10 * time.Second)
		synctest.Wait()
		require.NoError(t, k.Writes())
		release := make(chan struct{})
		beat := k.Beat
		k.mu.Lock()
		k.Beat = func(ctx context.Context, least int64) (Beats, error) { <-release; return beat(ctx, least) }
		k.mu.Unlock()
		time.Sleep(10 * time.Second)
		if err := k.Writes(); err == nil || !strings.HasPrefix(err.Error(), "a write to postgres has been waiting for 9.7 s: ") {
			t.Errorf("a write that waits: %v", err)
		}
		close(release)
		time.Sleep(2 * time.Second)
		assert.NoError(t, k.Writes(), "after the wait")
		db.set(func() { db.down = errors.New("postgres is unavailable") })
		time.Sleep(writtenWithin + time.Second)
		assert.Equal(t, k.Writes(), db.down, "a write that fails")
	})
}

func TestClaim_FitsIntoATopic(t *testing.T) {
	c := claim{"11111111", newTenure(time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)), "aaaaaaaaaaaa", 1 << 40}
	if parsed, ok := parseClaim(c.String()); !ok || parsed != c || len(c.String()) > 52 {
		t.Errorf("%s (%d characters) is parsed as %+v, %v", c, len(c.String()), parsed, ok)
	}
}

// frozen is a place whose server does not reply.
type frozen struct{ *member }

func (frozen) Exchange(ctx context.Context, _ string, _ bool) (heard, asked []string, err error) {
	select {
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	case <-time.After(3 * time.Second):
		return nil, nil, errors.New("timeout")
	}
}

func TestKeeper_FrozenPlacesDelayNoBeatForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		at, beats := &hub{}, int64(0)
		k := New(Config{
			Installation: func(context.Context) (string, error) { return "11111111aaaa", nil }, Instance: "aaaaaaaaaaaa",
			Beat: func(context.Context, int64) (Beats, error) {
				beats++
				return Beats{"aaaaaaaaaaaa": beats}, nil
			},
			Places: map[string]Place{
				"mqtt": at.join(), "redis": frozen{at.join()}, "mqtt_shard_2": frozen{at.join()},
			},
			Logger: slog.New(slog.DiscardHandler),
		})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() { _ = k.Run(ctx) }()
		time.Sleep(2 * time.Second)
		for range 60 {
			time.Sleep(500 * time.Millisecond)
			require.NoError(t, k.Writes(), "postgres takes writes")
		}
	})
}

func TestPlace_KeepsTheLatestClaimsWhilePostgresIsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		at := &hub{}
		m := at.join()
		p := &place{Place: m, kin: map[string]int64{}, tenure: none}
		for n := range 3 * maxUnjudged {
			m.mu.Lock()
			m.heard, m.asked = append(m.heard, strconv.Itoa(n)), append(m.asked, strconv.Itoa(n))
			m.mu.Unlock()
			p.exchange(t.Context(), "11111111aaaa", 0)
		}
		if len(p.heard) != maxUnjudged || len(p.askers) > maxUnjudged || p.heard[0] == "0" {
			t.Errorf("%d heard, %d asked", len(p.heard), len(p.askers))
		}
	})
}
