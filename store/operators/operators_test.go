package operators

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"motorpool/internal/assert"
	"motorpool/internal/require"
	"motorpool/operators"
	"motorpool/store/storetest"
	"motorpool/telematics"
)

var anna = operators.Operator{Name: "anna", Role: operators.Admin, Scopes: []string{"all_agencies", "halt"}}

var root = telematics.OperatorAt("root")

// open returns the store of the owner of the tables, for whom motorpool operator works, and that of
// an instance.
func open(t *testing.T) (owner, instance Store) {
	address := storetest.NewDatabase(t)
	return Store{DB: storetest.OpenAsOwner(t, address)}, Store{DB: storetest.Open(t, address)}
}

func (s Store) mustAdd(t *testing.T, o operators.Operator, link []byte) operators.Operator {
	t.Helper()
	added, err := s.Add(t.Context(), o, link, root)
	require.NoError(t, err)
	return added
}

func TestStore_KeepsAnOperator(t *testing.T) {
	owner, s := open(t)
	if any, err := s.Any(t.Context()); any || err != nil {
		t.Errorf("Any of none = %v, %v", any, err)
	}
	storetest.AddVehicle(t, s.DB, 1) // and agency 1
	owner.mustAdd(t, anna, nil)
	ben := owner.mustAdd(t, operators.Operator{Name: "ben", Role: operators.Viewer, Agency: 1, Password: "x"}, nil)
	if any, err := s.Any(t.Context()); !any || err != nil {
		t.Errorf("Any = %v, %v", any, err)
	}
	got, found, err := s.ByName(t.Context(), "ben")
	if err != nil || !found || got.Agency != 1 || got.Role != operators.Viewer || got.Password != "x" || got.ID != ben.ID ||
		len(got.Scopes) != 0 {
		t.Errorf("ByName = %+v, %v, %v", got, found, err)
	}
	if list, err := s.List(t.Context()); err != nil || len(list) != 2 || list[0].Name != "anna" || len(list[0].Scopes) != 2 {
		t.Errorf("List = %+v, %v", list, err)
	}
	if _, err := owner.Add(t.Context(), anna, nil, root); !errors.Is(err, ErrExists) {
		t.Errorf("a second anna: %v", err)
	}
	if _, err := owner.Add(t.Context(), operators.Operator{Name: "eve", Role: operators.Admin, Agency: 99}, nil, root); !errors.Is(err,
		ErrNoAgency) {
		t.Errorf("an agency that does not exist: %v", err)
	}
	if _, err := owner.Add(t.Context(), operators.Operator{Name: "eve", Role: operators.Admin}, nil, root); err == nil {
		t.Error("the schema accepts an operator without an agency who does not see all")
	}
}

func TestStore_ALinkSetsOnePassword(t *testing.T) {
	owner, s := open(t)
	_, digest := operators.NewCode()
	owner.mustAdd(t, anna, digest)
	of, found, err := s.ByLink(t.Context(), digest)
	if err != nil || !found || of.Name != "anna" {
		t.Fatalf("ByLink = %+v, %v, %v", of, found, err)
	}
	var set atomic.Int64
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if _, ok, err := s.SetPassword(t.Context(), digest, "hash", root); err != nil {
				t.Error(err)
			} else if ok {
				set.Add(1)
			}
		})
	}
	all.Wait()
	assert.Equal(t, set.Load(), 1, "requests have set a password")
	if _, found, err := s.ByLink(t.Context(), digest); found || err != nil {
		t.Errorf("a used link: %v, %v", found, err)
	}
	if _, ok, err := s.SetPassword(t.Context(), nil, "hash", root); ok || err != nil {
		t.Errorf("without a link: %v, %v", ok, err)
	}
}

func TestStore_ALinkEnds(t *testing.T) {
	owner, s := open(t)
	_, digest := operators.NewCode()
	added := owner.mustAdd(t, anna, digest)
	if left := time.Until(added.LinkUntil); left < operators.LinkFor-time.Hour || left > operators.LinkFor+time.Hour {
		t.Errorf("the link is good for %v, want %v", left, operators.LinkFor)
	}
	require.NoError(t, owner.DB.Exec(t.Context(), `update operators set link_until = now() - interval '1 second'`))
	if _, found, err := s.ByLink(t.Context(), digest); found || err != nil {
		t.Errorf("ByLink of one that has ended: %v, %v", found, err)
	}
	if _, ok, err := s.SetPassword(t.Context(), digest, "hash", root); ok || err != nil {
		t.Errorf("SetPassword with one that has ended: %v, %v", ok, err)
	}
}

func TestStore_SessionsEndWithThePassword(t *testing.T) {
	owner, s := open(t)
	o := owner.mustAdd(t, anna, nil)
	_, digest := operators.NewCode()
	lives := func(of operators.Operator, want bool) {
		t.Helper()
		if _, found, err := s.OfSession(t.Context(), of.ID, of.Epoch); found != want || err != nil {
			t.Errorf("the session lives: %v, %v; want %v", found, err, want)
		}
	}
	lives(o, true)
	reset, found, err := owner.Reset(t.Context(), "anna", "", digest, root)
	if err != nil || !found || reset.Password != "" {
		t.Fatalf("Reset = %+v, %v, %v", reset, found, err)
	}
	lives(o, false)
	set, _, err := s.SetPassword(t.Context(), digest, "hash", root)
	require.NoError(t, err)
	lives(reset, false)
	lives(set, true)
	if _, found, err := owner.Remove(t.Context(), "anna", root); err != nil || !found {
		t.Fatalf("Remove = %v, %v", found, err)
	}
	lives(set, false)
	lives(owner.mustAdd(t, anna, nil), true)
	lives(set, false) // another anna
	for name, change := range map[string]func() (operators.Operator, bool, error){
		"Remove": func() (operators.Operator, bool, error) { return owner.Remove(t.Context(), "eve", root) },
		"Reset":  func() (operators.Operator, bool, error) { return owner.Reset(t.Context(), "eve", "", digest, root) },
	} {
		if _, found, err := change(); found || err != nil {
			t.Errorf("%s of none: %v, %v", name, found, err)
		}
	}
	var entries []struct{ Action, Note string }
	require.NoError(t, s.DB.Pool.Select(&entries, `select action, note from activity order by id`))
	if len(entries) != 5 || entries[0].Action != "operator.add" || entries[0].Note != "anna admin all_agencies halt" ||
		entries[1].Action != "operator.password" || entries[3].Action != "operator.remove" {
		t.Errorf("audit log %+v", entries)
	}
}

// An instance sets passwords, and neither adds nor removes people.
func TestStore_AnInstanceSetsPasswords(t *testing.T) {
	owner, s := open(t)
	_, digest := operators.NewCode()
	owner.mustAdd(t, anna, digest)
	if _, ok, err := s.SetPassword(t.Context(), digest, "hash", root); err != nil || !ok {
		t.Errorf("SetPassword = %v, %v", ok, err)
	}
	if _, err := s.Add(t.Context(), operators.Operator{Name: "eve", Role: operators.Admin, Scopes: []string{"all_agencies"}}, nil,
		root); err == nil {
		t.Error("an instance adds an operator")
	}
	if _, _, err := s.Remove(t.Context(), "anna", root); err == nil {
		t.Error("an instance removes an operator")
	}
}

// A role that an earlier version was granted its rights needs no further command.
func TestStore_TheMigrationGrantsTheRoleOfAnInstance(t *testing.T) {
	address := storetest.NewEmptyDatabase(t)
	db := storetest.OpenAsOwner(t, address)
	require.NoError(t, db.MigrateTo(t.Context(), 91))
	storetest.Exec(t, db.Pool, `create role earlier_instance; grant
		select, insert, update, delete on payment_methods to earlier_instance`)
	t.Cleanup(func() {
		if _, err := db.Pool.Exec(`drop owned by earlier_instance; drop role earlier_instance`); err != nil {
			t.Error(err)
		}
	})
	_, err := db.Migrate(t.Context())
	require.NoError(t, err)
	var has []bool
	require.NoError(t, db.Pool.Select(&has, `select has_table_privilege('earlier_instance', 'operators', p)
		from unnest(array['select', 'update', 'insert', 'delete']) as p`))
	assert.EqualSlices(t, has, []bool{true, true, false, false}, "select, update, insert, delete")
}
