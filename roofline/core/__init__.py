"""The pure part: vocabulary, costs, devices, floors, time accounting, the saved profile. Imports no framework."""
