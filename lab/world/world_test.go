package world

import (
	"path/filepath"
	"testing"
)

func TestBuild_NamedProgramIsNotBuilt(t *testing.T) {
	binary, err := BuildProgram(t.Context(), "some/motorpool", t.TempDir(), false)
	if err != nil || !filepath.IsAbs(binary) || filepath.Base(binary) != "motorpool" {
		t.Errorf("binary %q, %v", binary, err)
	}
}
