// Moved to base/decide.h.
#pragma once
#include "base/decide.h"
