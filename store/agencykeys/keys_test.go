package agencykeys

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"motorpool/internal/require"
	"motorpool/rental"
	"motorpool/store/activity"
	"motorpool/store/pg"
	"motorpool/store/storetest"
	"motorpool/store/unavailable"
	"motorpool/telematics"
)

// withAgencies returns a database with the agencies 1 and 2.
func withAgencies(t *testing.T) *pg.DB {
	t.Helper()
	p := storetest.Open(t, storetest.NewDatabase(t))
	storetest.Exec(t, p.Pool, `insert into agencies (id, code, name) values (1, 'MUC', 'Isar'), (2, 'BER', 'Spree')`)
	return p
}

// keysOf returns the keys of an instance that has not read any yet.
func keysOf(t *testing.T, p *pg.DB, seals ...string) *Keys {
	t.Helper()
	return New(p, sealer(t, seals...))
}

func addKey(t *testing.T, k *Keys, agency telematics.AgencyID) rental.AgencyKey {
	t.Helper()
	key, found, err := k.Add(t.Context(), agency, telematics.OperatorAt("eva"))
	if err != nil || !found {
		t.Fatal(found, err)
	}
	return key
}

func found(t *testing.T, k *Keys, id string) rental.AgencyKey {
	t.Helper()
	key, ok, err := k.AgencyKey(t.Context(), id)
	if err != nil || !ok {
		t.Fatalf("key %s: found %v, %v", id, ok, err)
	}
	return key
}

func TestKeys_EveryInstanceReadsTheSecret(t *testing.T) {
	p := withAgencies(t)
	k := keysOf(t, p, sealKeyA)
	one, two := addKey(t, k, 1), addKey(t, k, 2)
	if len(one.Secret) != 32 || bytes.Equal(one.Secret, two.Secret) || one.ID == two.ID || one.AgencyCode != "MUC" || two.Agency != 2 ||
		!one.Valid(time.Now()) {
		t.Errorf("keys %+v and %+v, want valid ones with different ids and secrets", one, two)
	}
	if _, err := rental.ParseSignature("k=" + one.ID + ",t=1,n=abcdefghijklmnop,v1=" + strings.Repeat("00", 32)); err != nil {
		t.Errorf("a signature cannot name the key %s: %v", one.ID, err)
	}
	for _, instance := range []*Keys{k, keysOf(t, p, sealKeyB, sealKeyA)} {
		got := found(t, instance, one.ID)
		if !bytes.Equal(got.Secret, one.Secret) || got.Agency != 1 || got.AgencyCode != "MUC" || got.State != rental.KeyActive ||
			!got.Created.Equal(one.Created) {
			t.Errorf("read as %+v, want %+v", got, one)
		}
	}
	if _, ok, err := k.AgencyKey(t.Context(), "none\x00"); ok || err != nil {
		t.Errorf("unknown key: found %v, %v", ok, err)
	}
	if _, ok, err := k.Add(t.Context(), 3, telematics.OperatorAt("eva")); ok || err != nil {
		t.Errorf("key for an unknown agency: added %v, %v", ok, err)
	}
	var plain int
	if err := p.Pool.Get(&plain, `select count(*) from agency_keys where position($1::bytea in sealed) > 0`, one.Secret); err != nil ||
		plain != 0 {
		t.Errorf("%d secrets are in the database in plain text, %v", plain, err)
	}
	if list, err := k.List(t.Context()); err != nil || len(list) != 2 || list[0].ID != one.ID || list[0].Secret != nil ||
		list[1].AgencyCode != "BER" {
		t.Errorf("listed as %+v, %v", list, err)
	}
}

func TestKeys_AKeyRetiresAndIsRevokedPermanently(t *testing.T) {
	p := withAgencies(t)
	k := keysOf(t, p, sealKeyA)
	key := addKey(t, k, 1)
	until := time.Now().Add(time.Hour).UTC().Truncate(time.Second)
	if got, ok, err := k.Retire(t.Context(), 0, key.ID, until, telematics.OperatorAt("eva")); err != nil || !ok ||
		got.State != rental.KeyRetiring || !got.Retires.Equal(until) {
		t.Errorf("Retire = %+v, %v, %v", got, ok, err)
	}
	if got := found(t, k, key.ID); !got.Valid(until.Add(-time.Second)) || got.Valid(until) {
		t.Errorf("the retiring key %+v, want it valid until its date", got)
	}
	if got, ok, err := k.Revoke(t.Context(), 0, key.ID, telematics.OperatorAt("tom")); err != nil || !ok || got.State != rental.KeyRevoked {
		t.Errorf("Revoke = %+v, %v, %v", got, ok, err)
	}
	if found(t, k, key.ID).Valid(time.Now()) {
		t.Error("a revoked key is valid")
	}
	if _, ok, err := k.Retire(t.Context(), 0, key.ID, until, telematics.OperatorAt("eva")); ok || err != nil {
		t.Errorf("Retire of the revoked key: found %v, %v", ok, err)
	}
	for _, id := range []string{"none", "no\x00ne"} {
		if _, ok, err := k.Revoke(t.Context(), 0, id, telematics.OperatorAt("eva")); ok || err != nil {
			t.Errorf("Revoke of %q: found %v, %v", id, ok, err)
		}
	}
	lines, err := activity.New(p).Activities(t.Context(), telematics.ActivityQuery{Page: telematics.Page{Limit: 10}})
	if err != nil || len(lines) != 3 {
		t.Fatalf("audit entries %+v, %v; want 3", lines, err)
	}
	for i, want := range []struct{ action, actor, note string }{
		{rental.AgencyKeyRevoke, "tom", key.ID},
		{rental.AgencyKeyRetire, "eva", key.ID + " until " + until.Format(time.RFC3339)},
		{rental.AgencyKeyAdd, "eva", key.ID},
	} {
		if l := lines[i]; l.Action != want.action || l.Actor.Subject != want.actor || l.Actor.Role != telematics.System ||
			l.Note != want.note ||
			l.Agency != 1 {
			t.Errorf("audit entry %+v, want %+v", l, want)
		}
	}
}

func TestKeys_OtherInstancesApplyAChangeWithinASecond(t *testing.T) {
	p := withAgencies(t)
	here, there := keysOf(t, p, sealKeyA), keysOf(t, p, sealKeyA)
	clock := storetest.NewClock(time.Now())
	there.now = clock.Now
	key := addKey(t, here, 1)
	if !found(t, there, key.ID).Valid(time.Now()) {
		t.Fatal("the new key is not valid at the other instance")
	}
	_, _, err := here.Revoke(t.Context(), 0, key.ID, telematics.OperatorAt("eva"))
	require.NoError(t, err)
	if found(t, here, key.ID).Valid(time.Now()) {
		t.Error("the instance that revoked the key still accepts it")
	}
	added := addKey(t, here, 1)
	clock.Move(Within - time.Millisecond)
	if !found(t, there, key.ID).Valid(time.Now()) {
		t.Error("within a second the other instance reads the key again")
	}
	clock.Move(time.Millisecond)
	if found(t, there, key.ID).Valid(time.Now()) {
		t.Error("after a second the other instance still accepts the key")
	}
	found(t, there, added.ID)
}

func TestAgencyKey_ConcurrentCallersShareOneReading(t *testing.T) {
	p := withAgencies(t)
	k := keysOf(t, p, sealKeyA)
	key := addKey(t, k, 1)
	lock := storetest.Begin(t, p.Pool)
	storetest.Exec(t, lock, `lock table agency_keys in access exclusive mode`)
	var all sync.WaitGroup
	for i := range 50 {
		id := key.ID
		if i%2 == 0 {
			id = strings.Repeat("x", i+1) // an invented id
		}
		all.Go(func() {
			if _, ok, err := k.AgencyKey(t.Context(), id); err != nil || ok != (id == key.ID) {
				t.Errorf("key %s: found %v, %v", id, ok, err)
			}
		})
	}
	left, leave := context.WithCancel(t.Context())
	leave()
	if _, _, err := k.AgencyKey(left, key.ID); err == nil {
		t.Error("a caller that left got no error")
	}
	storetest.WaitForLock(t, p)
	var waiting int
	if err := p.Pool.Get(&waiting, `select count(*) from pg_locks where not granted and database = (select oid from pg_database
		where datname = current_database())`); err != nil || waiting != 1 {
		t.Errorf("%d statements wait, %v; want 1", waiting, err)
	}
	require.NoError(t, lock.Rollback())
	all.Wait()
}

// A reading that waits for a slow Postgres may miss a key that was revoked since it began.
func TestAgencyKey_ALateCallerDoesNotShareAnOldReading(t *testing.T) {
	p := withAgencies(t)
	k, clock := keysOf(t, p, sealKeyA), storetest.NewClock(time.Now())
	k.now = clock.Now
	lock := storetest.Begin(t, p.Pool)
	storetest.Exec(t, lock, `lock table agency_keys in access exclusive mode`)
	var both sync.WaitGroup
	read := func() {
		asked := k.now()
		both.Go(func() {
			if got, err := k.current(t.Context()); err != nil || asked.Sub(got.at) >= Within {
				t.Errorf("read %v, %v; asked %v", got, err, asked)
			}
		})
	}
	read()
	storetest.WaitForLock(t, p)
	clock.Move(Within)
	read()
	time.Sleep(50 * time.Millisecond) // it joins the reading; if not yet, it reads by itself
	require.NoError(t, lock.Rollback())
	both.Wait()
}

func TestKeys_SecretThatCannotBeOpenedIsUnavailable(t *testing.T) {
	p := withAgencies(t)
	a, b := keysOf(t, p, sealKeyA), keysOf(t, p, sealKeyB)
	mine, theirs := addKey(t, a, 1), addKey(t, b, 1)
	if _, _, err := a.AgencyKey(t.Context(), theirs.ID); !unavailable.Is(err) || !strings.Contains(err.Error(), theirs.ID) {
		t.Errorf("sealed with another key: %v, want unavailable", err)
	}
	found(t, a, mine.ID) // other keys are not affected
	// An attacker may copy a sealed secret to another key in the database: it does not open there.
	storetest.Exec(t, p.Pool, `update agency_keys set sealed = (select sealed from agency_keys where id = $1)
		where id = $2`, mine.ID, theirs.ID)
	a.forget()
	if _, _, err := a.AgencyKey(t.Context(), theirs.ID); !unavailable.Is(err) {
		t.Errorf("copied to another key: %v, want unavailable", err)
	}
	storetest.Exec(t, p.Pool, `update agency_keys set agency_id = 2 where id = $1`, mine.ID)
	a.forget()
	if _, _, err := a.AgencyKey(t.Context(), mine.ID); !unavailable.Is(err) {
		t.Errorf("moved to another agency: %v, want unavailable", err)
	}
	for name, none := range map[string]*Keys{"nil": New(p, nil), "empty": keysOf(t, p)} {
		if _, _, err := none.AgencyKey(t.Context(), mine.ID); !unavailable.Is(err) ||
			!strings.Contains(err.Error(), "--agency-secrets-key") {
			t.Errorf("%s sealer: %v, want unavailable for lack of --agency-secrets-key", name, err)
		}
		if _, _, err := none.Add(t.Context(), 1, telematics.OperatorAt("eva")); !unavailable.Is(err) {
			t.Errorf("%s sealer: Add = %v, want unavailable", name, err)
		}
		if list, err := none.List(t.Context()); err != nil || len(list) != 2 {
			t.Errorf("%s sealer: List = %d keys, %v; want 2", name, len(list), err)
		}
		if _, ok, err := none.Revoke(t.Context(), 0, mine.ID, telematics.OperatorAt("eva")); err != nil || !ok {
			t.Errorf("%s sealer: Revoke = %v", name, err)
		}
	}
	nowhere, err := pg.New(pg.Config{URL: "postgres://127.0.0.1:1/none"})
	require.NoError(t, err)
	defer nowhere.Close()
	if _, _, err := keysOf(t, nowhere, sealKeyA).AgencyKey(t.Context(), mine.ID); !unavailable.Is(err) {
		t.Errorf("without Postgres: %v, want unavailable", err)
	}
}

func TestKeys_TheInstallationsKeyIsChangedByResealing(t *testing.T) {
	p := withAgencies(t)
	old := keysOf(t, p, sealKeyA)
	one, two := addKey(t, old, 1), addKey(t, old, 2)
	both := keysOf(t, p, sealKeyB, sealKeyA)
	three := addKey(t, both, 1)
	if n, err := both.Reseal(t.Context()); n != 2 || err != nil {
		t.Errorf("%d keys resealed, %v; want 2", n, err)
	}
	alone := keysOf(t, p, sealKeyB)
	for _, key := range []rental.AgencyKey{one, two, three} {
		if got := found(t, alone, key.ID); !bytes.Equal(got.Secret, key.Secret) {
			t.Errorf("the key %s has another secret after the resealing", key.ID)
		}
	}
	if n, err := both.Reseal(t.Context()); n != 0 || err != nil {
		t.Errorf("resealed again: %d, %v; want 0", n, err)
	}
	lost := addKey(t, old, 1)
	four := addKey(t, alone, 1)
	other := keysOf(t, p, strings.Repeat("ab", 32), sealKeyB)
	if n, err := other.Reseal(t.Context()); n != 4 || err == nil || !strings.Contains(err.Error(), lost.ID) ||
		strings.Contains(err.Error(), four.ID) {
		t.Errorf("with a secret that cannot be opened: %d, %v; want 4 and an error that names it", n, err)
	}
}

func TestFirstExpiry_IsThatOfTheFirstAgencyWithoutAnotherKey(t *testing.T) {
	p := withAgencies(t)
	k := keysOf(t, p, sealKeyA)
	want := func(what string, want time.Time) {
		t.Helper()
		if got, err := FirstExpiry(t.Context(), p); err != nil || !got.Equal(want) {
			t.Errorf("%s: %v, %v; want %v", what, got, err, want)
		}
	}
	retire := func(id string, until time.Time) {
		t.Helper()
		if _, ok, err := k.Retire(t.Context(), 0, id, until, telematics.OperatorAt("eva")); err != nil || !ok {
			t.Fatal(ok, err)
		}
	}
	soon := time.Now().Add(time.Hour).UTC().Truncate(time.Second)
	want("no keys", time.Time{})
	one, other, two := addKey(t, k, 1), addKey(t, k, 1), addKey(t, k, 2)
	retire(one.ID, soon)
	want("the agency has another key", time.Time{})
	retire(two.ID, soon.Add(time.Hour))
	want("agency 2 has no other key", soon.Add(time.Hour))
	retire(other.ID, soon.Add(time.Minute))
	want("the last key of agency 1", soon.Add(time.Minute))
	for _, id := range []string{one.ID, other.ID} {
		_, _, err := k.Revoke(t.Context(), 0, id, telematics.OperatorAt("eva"))
		require.NoError(t, err)
	}
	want("all keys of agency 1 are revoked", soon.Add(time.Hour))
}

func TestAdd_ConcurrentRequestsDoNotExceedTheKeysOfADay(t *testing.T) {
	p := withAgencies(t)
	k := keysOf(t, p, sealKeyA)
	var made, over atomic.Int64
	var requests sync.WaitGroup
	for range rental.NewKeysADay + 15 {
		requests.Go(func() {
			switch _, found, err := k.Add(t.Context(), 1, telematics.OperatorAt("eva")); {
			case errors.Is(err, rental.ErrKeysUsedUp):
				over.Add(1)
			case err == nil && found:
				made.Add(1)
			default:
				t.Error(found, err)
			}
		})
	}
	requests.Wait()
	if made.Load() != rental.NewKeysADay || over.Load() != 15 {
		t.Errorf("%d keys were made and %d refused, want %d and 15", made.Load(), over.Load(), rental.NewKeysADay)
	}
	addKey(t, k, 2) // another agency
	if _, found, err := k.Add(t.Context(), 3, telematics.OperatorAt("eva")); found || err != nil {
		t.Errorf("an agency that does not exist: %v, %v", found, err)
	}
}
