// Under sudo, what is made for the user belongs to the user: the one who typed the command.
// Best effort: on a file system without owners, or for a user that is none, the file stays root's,
// which is a nuisance and no loss. Without sudo these do nothing.
#pragma once

void sudo_give(int fd);
void sudo_give_path(const char *path); // where a descriptor is not at hand, or must not be opened
