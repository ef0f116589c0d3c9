package signing

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"
)

func FuzzVerify(f *testing.F) {
	seed(f, "command-*.jws")
	_, ring := goldenKeys(f)
	signed := goldenSigned()
	for _, c := range goldenFloor {
		signed = append(signed, c)
	}
	f.Fuzz(func(t *testing.T, message []byte) {
		claims, err := ring.Verify(message)
		if err != nil {
			return
		}
		for _, c := range signed {
			if reflect.DeepEqual(claims, c) {
				return
			}
		}
		t.Errorf("forged: %s says %+v", message, claims)
	})
}

// seed adds the golden messages.
func seed(f *testing.F, pattern string) {
	f.Helper()
	paths, err := filepath.Glob(filepath.Join("..", "testdata", "wire", pattern))
	if err != nil || len(paths) == 0 {
		f.Fatalf("no golden messages %s: %v", pattern, err)
	}
	for _, path := range paths {
		message, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(message)
	}
}
