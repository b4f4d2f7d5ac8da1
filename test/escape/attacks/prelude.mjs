// What every attack in JavaScript starts with; the test puts it in front.
globalThis.result = [] // results of the attack: any element is a vulnerability

// attempt runs action. An error of the system means that it was refused; a
// value means that it was reached, which counts as a success of the attack.
async function attempt(what, action) {
  let got
  try {
    got = await action()
  } catch (error) {
    const code = error.code ?? error.cause?.code
    if (code === undefined) throw error // the attack itself is broken
    console.log(`refused: ${what}: ${code}`)
    return undefined
  }
  if (got === undefined) {
    console.log(`harmless: ${what}`)
    return undefined
  }
  globalThis.result.push(`${what}: ${JSON.stringify(got)}`.slice(0, 300))
  return got
}
