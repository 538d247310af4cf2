// Directory trees that prony made and takes away again.
#pragma once

#include "base/err.h"

// Removes a file, a symbolic link or a directory with all it holds. Never follows a symbolic link
// and never enters a mount, not even a bind mount of the same file system: a tree that holds one
// is emptied around it and reported. Nothing there is success.
// "/", relative paths and paths that hold ".." are programmer's or user's slips and refused.
int tree_remove(const char *path, struct err *err);
