"""What one run needs: its method and its parts (`method`, `begin`), the first atoms or the user's start (`first`,
`given`), checks of f and of the oracle (`guards`), what a run tells (`result`, `watchers`), and runs as files
(`stored`)."""
