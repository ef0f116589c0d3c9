package alerts

import (
	"testing"

	"motorpool/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }
