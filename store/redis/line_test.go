package redis

import (
	"testing"

	"motorpool/internal/require"
	"motorpool/store/storetest"
)

func TestSwap_StoresALineOnlyInsteadOfTheExpectedOne(t *testing.T) {
	t.Parallel()
	for name, address := range storetest.BothRedis(t) {
		db := open(t, address)
		// Fields without a signature, as earlier versions wrote them, are none.
		require.NoError(t, db.Client.HSet(t.Context(), lineKey, "system", "7712584607280830095", "timeline", 999).Err())
		for _, step := range []struct{ expected, text, want string }{
			{"", "", ""},
			{"another", "first", ""},
			{"", "first", "first"},
			{"", "second", "first"},
			{"first", "", "first"},
			{"first", "second", "second"},
			{"first", "third", "second"},
		} {
			stored, err := Line{db}.Swap(t.Context(), step.expected, step.text)
			if err != nil || stored != step.want {
				t.Errorf("%s: after %q instead of %q: %q, %v", name, step.text, step.expected, stored, err)
			}
		}
	}
}
