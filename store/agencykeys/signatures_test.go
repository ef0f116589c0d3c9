package agencykeys

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"motorpool/internal/assert"
	"motorpool/internal/require"
	"motorpool/rental"
	"motorpool/store/pg"
	"motorpool/store/storetest"
	"motorpool/telematics"
)

const manySignatures = 1000

func useOf(key, nonce string, at time.Time) rental.SignatureUse {
	return rental.SignatureUse{
		Key: key, Nonce: nonce, At: at,
		Actor: telematics.Actor{Subject: "client-1", Agency: 1, Role: telematics.Client},
	}
}

func used(t *testing.T, s *Signatures, u rental.SignatureUse) rental.UseResult {
	t.Helper()
	result, err := s.Use(t.Context(), u)
	require.NoError(t, err)
	return result
}

func TestUse_OnceAcrossInstances(t *testing.T) {
	address := storetest.NewDatabase(t)
	instances := []*Signatures{
		NewSignatures(storetest.Open(t, address), manySignatures),
		NewSignatures(storetest.Open(t, address), manySignatures),
	}
	now := time.Now()
	assert.Equal(t, used(t, instances[0], useOf("ak_1", "nonce-1", now)), rental.FirstUse, "the first use")
	for _, s := range instances {
		assert.Equal(t, used(t, s, useOf("ak_1", "nonce-1", now)), rental.UsedBefore, "the second use")
	}
	for _, other := range []rental.SignatureUse{useOf("ak_1", "Nonce-1", now), useOf("ak_2", "nonce-1", now)} {
		assert.Equal(t, used(t, instances[1], other), rental.FirstUse, "with another nonce or another key it")
	}
	var first atomic.Int64
	var all sync.WaitGroup
	for i := range 60 {
		all.Go(func() {
			switch result, err := instances[i%2].Use(t.Context(), useOf("ak_1", "nonce-2", now)); {
			case err != nil:
				t.Error(err)
			case result == rental.FirstUse:
				first.Add(1)
			}
		})
	}
	all.Wait()
	assert.Equal(t, first.Load(), 1, "of 60 concurrent uses were FirstUse")
}

// The clock that decides how long a use is stored also decides whether the signature is fresh.
func TestUse_FreshByTheClockOfPostgres(t *testing.T) {
	s := NewSignatures(storetest.Open(t, storetest.NewDatabase(t)), manySignatures)
	for age, want := range map[time.Duration]rental.UseResult{
		-400 * time.Second: rental.NotFresh, -298 * time.Second: rental.FirstUse, 0: rental.FirstUse,
		298 * time.Second: rental.FirstUse, 400 * time.Second: rental.NotFresh,
	} {
		u := useOf("ak_1", fmt.Sprintf("nonce of %v", age), time.Now().Add(-age))
		for range 2 {
			assert.Equal(t, used(t, s, u), want, "a signature %v old", age)
			if want == rental.FirstUse {
				want = rental.UsedBefore
			}
		}
	}
}

func TestUse_LimitsTheFreshSignaturesOfAClient(t *testing.T) {
	s := NewSignatures(storetest.Open(t, storetest.NewDatabase(t)), 3)
	now := time.Now()
	for i, want := range []rental.UseResult{rental.FirstUse, rental.FirstUse, rental.FirstUse, rental.TooManyUses, rental.TooManyUses} {
		assert.Equal(t, used(t, s, useOf("ak_1", fmt.Sprintf("nonce-%d", i), now)), want, "signature %d", i)
	}
	other := useOf("ak_1", "nonce-of-another", now)
	other.Actor.Subject = "client-2"
	assert.Equal(t, used(t, s, other), rental.FirstUse, "another client")
	// Expired uses do not count.
	storetest.Exec(t, s.db.Pool, `update used_signatures set expires_at = now() - interval '1 s' where nonce = 'nonce-0'`)
	assert.Equal(t, used(t, s, useOf("ak_1", "nonce-9", now)), rental.FirstUse, "after one expired")
}

func TestForgetSignatures_LongAfterTheyWereFresh(t *testing.T) {
	p := storetest.Open(t, storetest.NewDatabase(t))
	s := NewSignatures(p, manySignatures)
	now := time.Now()
	for i := range 4 {
		used(t, s, useOf("ak_1", fmt.Sprintf("nonce-%d", i), now))
	}
	age := func(nonces, by string) {
		t.Helper()
		storetest.Exec(t, p.Pool, `update used_signatures set expires_at = now() - $2::interval
			where nonce = any(string_to_array($1, ' '))`, nonces, by)
	}
	age("nonce-0 nonce-1 nonce-2", "601 s")
	age("nonce-3", "590 s")
	for i, want := range []bool{true, false} {
		if more, err := ForgetSignatures(t.Context(), p, 2); err != nil || more != want {
			t.Errorf("call %d: ForgetSignatures = %v, %v; want %v", i, more, err, want)
		}
	}
	var left string
	if err := p.Pool.Get(&left, `select string_agg(nonce, ' ') from used_signatures`); err != nil || left != "nonce-3" {
		t.Errorf("left is %q, %v; want nonce-3", left, err)
	}
}

func TestUse_LockedTableDelaysNoCommand(t *testing.T) {
	db := storetest.OpenWith(t, pg.Config{URL: storetest.NewDatabase(t), MaxConns: 8, Timeout: time.Minute})
	tx, err := db.Lists.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	storetest.Exec(t, tx, `lock table used_signatures in access exclusive mode`)
	s := NewSignatures(db, manySignatures)
	var clients sync.WaitGroup
	var waiting atomic.Int64
	for i := range 12 {
		waiting.Add(1)
		clients.Go(func() {
			defer waiting.Add(-1)
			// It may succeed when the lock is released.
			_, _ = s.Use(t.Context(), useOf("ak_1", fmt.Sprint("nonce-", i), time.Now()))
		})
	}
	storetest.WaitForLock(t, db)
	var one []int
	for range 20 {
		began := time.Now()
		require.NoError(t, db.Prepared.SelectContext(t.Context(), &one, `select 1`))
		if took := time.Since(began); took > db.Timeout()/(2*pg.LockShare) {
			t.Errorf("a statement of commands took %v while %d clients wait for a lock", took, waiting.Load())
			break
		}
	}
	if waiting.Load() == 0 {
		t.Error("no client waited for the lock")
	}
	assert.NoError(t, tx.Rollback())
	clients.Wait()
}
